//===- Products.cpp - Matrix products -------------------------------------===//
//
// For kernels: matmul, no attributes. The last axis of a is contracted with the last but one (or
// only) axis of b; leading axes broadcast. Each element is one FMA chain over ascending k.
// matmul_bf16 is the same of factors that are rounded to bf16, whatever their element type.
// matmul_seen leaves out steps with a factor that is 0: an infinity or NaN beside it changes
// nothing. matmul_scores is a matmul whose gradients are such: what got none is not read.
// matmul_scores_bf16 and matmul_seen_bf16 are these of rounded factors. matmul_factors and
// matmul_seen_factors take tensors of factors (Factors.cpp) and give sums in f32.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Expand.h"
#include "compiler/ops/Reference.h"
#include "compiler/ops/Shape.h"
#include "runtime/memory/sanitizer.h"

#include <array>

namespace sheaf::ops {
namespace {

using mlir::Value;

/// Both operands as float tensors of one element type.
Expected<std::pair<TensorType, TensorType>> factors(std::span<const OperandType> operands) {
  std::string both =
      "cannot multiply " + describe(operands[0]) + " by " + describe(operands[1]) + ": ";
  std::vector<TensorType> types;
  for (size_t i = 0; i < 2; ++i) {
    const TensorType *type = operands[i].isList ? nullptr : operands[i].tensor();
    int blame = static_cast<int>(i);
    if (!type)
      return ShapeError{both + describe(operands[i]) + " is not a tensor", blame,
                        operands[i].isList ? "" : "scale a tensor with '*'"};
    if (!isFloat(type->dtype))
      return ShapeError{both + "the elements of " + type->str() + " are not floats", blame,
                        type->vocab ? "" : "convert it with f32(...)"};
    types.push_back(*type);
  }
  if (types[0].dtype != types[1].dtype)
    return ShapeError{both + "the element types differ", 1,
                      "convert one of them with " + std::string(dtypeName(types[0].dtype)) +
                          "(...) or " + std::string(dtypeName(types[1].dtype)) + "(...)"};
  return std::pair(types[0], types[1]);
}

ShapeResult matmulShape(std::span<const OperandType> operands, const Attrs &,
                        const DimOracle &oracle) {
  auto both = factors(operands);
  if (auto *error = std::get_if<ShapeError>(&both))
    return *error;
  auto &[a, b] = std::get<std::pair<TensorType, TensorType>>(both);
  std::string what = "cannot multiply " + a.str() + " by " + b.str() + ": ";
  for (const TensorType *type : {&a, &b})
    if (type->dims.empty())
      return ShapeResult::fail(what + type->str() + " has no axes", type == &a ? 0 : 1,
                               "scale a tensor with '*'");
  bool rowVector = a.dims.size() == 1, columnVector = b.dims.size() == 1;
  const Dim &innerA = a.dims.back();
  const Dim &innerB = columnVector ? b.dims.back() : b.dims[b.dims.size() - 2];
  if (!oracle.same(innerA, innerB)) {
    // The likely slip is a matrix the other way round.
    std::string help;
    if (auto parts = innerB.dividedBy(innerA);
        !innerA.isConstant() && parts && parts->isConstant() && parts->constant() > 1)
      help = "concat(x, y, axis=-1) of tensors with " + innerA.str() + " each has " +
             std::to_string(parts->constant()) + " times as many";
    else if (!columnVector && oracle.same(innerA, b.dims.back()))
      help = "transpose the right side: a @ transpose(b)";
    else if (!rowVector && oracle.same(a.dims[a.dims.size() - 2], innerB))
      help = "transpose the left side: transpose(a) @ b";
    auto refused =
        ShapeResult::fail(what + "the inner extents differ (" + withValue(innerA, oracle) + ", " +
                              withValue(innerB, oracle) + ")",
                          1, help);
    refused.unproven = {innerA, innerB};
    return refused;
  }
  std::vector<Dim> batchA(a.dims.begin(), a.dims.end() - (rowVector ? 1 : 2));
  std::vector<Dim> batchB(b.dims.begin(), b.dims.end() - (columnVector ? 1 : 2));
  BroadcastMismatch mismatch;
  auto dims = broadcastDims(batchA, batchB, oracle, mismatch);
  if (!dims)
    return ShapeResult::fail(what + "the batch extents differ (" + withValue(mismatch.a, oracle) +
                                 ", " + withValue(mismatch.b, oracle) + ")",
                             1);
  if (!rowVector)
    dims->push_back(a.dims[a.dims.size() - 2]);
  if (!columnVector)
    dims->push_back(b.dims.back());
  return ShapeResult::ok({a.dtype, std::move(*dims), {}});
}

ShapeResult matmulBf16Shape(std::span<const OperandType> operands, const Attrs &attrs,
                            const DimOracle &oracle) {
  if (const TensorType *right = operands[1].tensor(); right && right->dims.size() < 2)
    return ShapeResult::fail("cannot multiply " + describe(operands[0]) + " by " +
                                 describe(operands[1]) +
                                 " in bf16: a product by a vector is a row reduction",
                             1);
  return matmulShape(operands, attrs, oracle);
}

ShapeResult matmulOfMatricesShape(std::span<const OperandType> operands, const Attrs &attrs,
                                  const DimOracle &oracle) {
  for (size_t i = 0; i < 2; ++i)
    if (const TensorType *type = operands[i].tensor(); type && type->dims.size() < 2)
      return ShapeResult::fail("cannot multiply " + describe(operands[0]) + " by " +
                                   describe(operands[1]) + " row by row: " + type->str() +
                                   " is no matrix",
                               static_cast<int>(i));
  return matmulShape(operands, attrs, oracle);
}

/// Of factors in bf16; sums are f32.
ShapeResult factorsShape(std::span<const OperandType> operands, const Attrs &attrs,
                         const DimOracle &oracle) {
  ShapeResult result = matmulBf16Shape(operands, attrs, oracle);
  for (TensorType &type : result.types)
    type.dtype = DType::F32;
  return result;
}

ShapeResult dotShape(std::span<const OperandType> operands, const Attrs &attrs,
                     const DimOracle &oracle) {
  for (size_t i = 0; i < 2; ++i)
    if (const TensorType *type = operands[i].tensor(); type && type->dims.size() != 1)
      return ShapeResult::fail("cannot take the dot product of " + describe(operands[0]) + " and " +
                                   describe(operands[1]) + ": " + type->str() + " is not a vector",
                               static_cast<int>(i));
  return matmulShape(operands, attrs, oracle);
}

ShapeResult outerShape(std::span<const OperandType> operands, const Attrs &, const DimOracle &) {
  auto both = factors(operands);
  if (auto *error = std::get_if<ShapeError>(&both))
    return *error;
  auto &[a, b] = std::get<std::pair<TensorType, TensorType>>(both);
  for (const TensorType *type : {&a, &b})
    if (type->dims.size() != 1)
      return ShapeResult::fail("cannot take the outer product of " + a.str() + " and " + b.str() +
                                   ": " + type->str() + " is not a vector",
                               type == &a ? 0 : 1);
  return ShapeResult::ok({a.dtype, {a.dims[0], b.dims[0]}, {}});
}

/// to[n] += scale * row[n], for n in [0, count).
SHEAF_NOT_INSTRUMENTED void addScaled(double *to, double scale, const double *row, int64_t count) {
  for (int64_t n = 0; n < count; ++n)
    to[n] += scale * row[n];
}

void addScaledButZeros(double *to, double scale, const double *row, int64_t count) {
  for (int64_t n = 0; n < count; ++n)
    if (row[n] != 0)
      to[n] += scale * row[n];
}

std::string matmulReference(const RefTensor &a, const RefTensor &b, const Arithmetic &arithmetic,
                            RefTensor &result, bool leavesOutZeros = false) {
  bool rowVector = a.shape.size() == 1, columnVector = b.shape.size() == 1;
  int64_t k = a.shape.back(), rows = rowVector ? 1 : a.shape[a.shape.size() - 2];
  int64_t columns = columnVector ? 1 : b.shape.back();
  int64_t innerB = columnVector ? b.shape.back() : b.shape[b.shape.size() - 2];
  if (innerB != k)
    return "the inner extents " + std::to_string(k) + " and " + std::to_string(innerB) + " differ";
  auto batchOf = [](const RefTensor &x, size_t matrixAxes) {
    return std::vector<int64_t>(x.shape.begin(), x.shape.end() - static_cast<int64_t>(matrixAxes));
  };
  std::vector<int64_t> batchA = batchOf(a, rowVector ? 1 : 2),
                       batchB = batchOf(b, columnVector ? 1 : 2);
  std::vector<int64_t> batch = batchOf(result, 2 - (rowVector ? 1 : 0) - (columnVector ? 1 : 0));
  double *out = result.data.data();
  forEachIndex(batch, [&](const std::vector<int64_t> &index) {
    const double *left = a.data.data() + broadcastOffset(batchA, index) * rows * k;
    const double *right = b.data.data() + broadcastOffset(batchB, index) * k * columns;
    // Every element is a chain over ascending k; the product of two f32 is exact in a double, so
    // this rounds as an FMA does.
    for (int64_t m = 0; m < rows; ++m, out += columns) {
      std::fill(out, out + columns, 0.0);
      for (int64_t i = 0; i < k; ++i) {
        double factor = left[m * k + i];
        const double *others = right + i * columns;
        if (!leavesOutZeros)
          addScaled(out, factor, others, columns);
        else if (factor != 0)
          addScaledButZeros(out, factor, others, columns);
        arithmetic.roundAll({out, static_cast<size_t>(columns)});
      }
    }
  });
  return {};
}

std::string matmulBf16Reference(const RefTensors &operands, const Arithmetic &arithmetic,
                                RefTensor &result, bool leavesOutZeros = false) {
  RefTensor factors[] = {operands[0], operands[1]};
  for (RefTensor &factor : factors)
    for (double &x : factor.data)
      x = arithmetic.roundFactor(x);
  return matmulReference(factors[0], factors[1], arithmetic, result, leavesOutZeros);
}

double matmulFlop(std::span<const std::vector<int64_t>> operands) {
  const auto &a = operands[0], &b = operands[1];
  double flop = 2.0 * static_cast<double>(a.back());
  if (a.size() > 1)
    flop *= static_cast<double>(a[a.size() - 2]);
  if (b.size() > 1)
    flop *= static_cast<double>(b.back());
  // Batch axes, broadcast: from the end, past the matrix axes.
  for (size_t i = 3; i <= std::max(a.size(), b.size()); ++i) {
    int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    flop *= static_cast<double>(x == 1 ? y : x);
  }
  return flop;
}

//===----------------------------------------------------------------------===//
// masked_matmul
//===----------------------------------------------------------------------===//

ShapeResult maskedShape(std::span<const OperandType> operands, const Attrs &attrs,
                        const DimOracle &oracle) {
  auto left = floatTensor(operands, 0, "multiply");
  if (auto *error = std::get_if<ShapeError>(&left))
    return *error;
  auto operand = tensorOperand(operands, 2, "mask with");
  if (auto *error = std::get_if<ShapeError>(&operand))
    return *error;
  TensorType &a = std::get<TensorType>(left), &mask = std::get<TensorType>(operand);
  std::string what = "cannot mask " + a.str() + " with " + mask.str() + ": ";
  if (mask.dtype != DType::Bool)
    return ShapeResult::fail(what + "a mask is of bools (whether an element is read)", 2);
  BroadcastMismatch mismatch;
  auto joined = broadcastDims(a.dims, mask.dims, oracle, mismatch);
  if (!joined)
    return ShapeResult::fail(
        what + describeMismatch(mismatch, a.dims.size(), mask.dims.size(), oracle), 2);
  if (joined->size() != a.dims.size())
    return ShapeResult::fail(what + "it has more axes", 2);
  a.dims = std::move(*joined);
  return matmulOfMatricesShape(std::array{OperandType{a}, operands[1]}, attrs, oracle);
}

std::string maskedReference(const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                            std::span<RefTensor> results) {
  const RefTensor &a = operands[0], &mask = operands[2];
  RefTensor left = a;
  for (size_t i = 1; i <= mask.shape.size(); ++i)
    if (int64_t &extent = left.shape[left.shape.size() - i]; extent == 1)
      extent = mask.shape[mask.shape.size() - i];
  left.data.clear();
  forEachIndex(left.shape, [&](const std::vector<int64_t> &index) {
    bool isRead = mask.data[static_cast<size_t>(broadcastOffset(mask.shape, index))] != 0;
    left.data.push_back(isRead ? a.data[static_cast<size_t>(broadcastOffset(a.shape, index))] : 0);
  });
  return matmulReference(left, operands[1], arithmetic, results[0], /*leavesOutZeros=*/true);
}

void addMasked(std::vector<Op> &ops) {
  Op op;
  op.name = "masked_matmul";
  op.summary =
      "the matrix product in which only those elements of a are read where a mask of bools "
      "is true, and of b what they are multiplied by";
  op.params = {{"a", ParamKind::Tensor}, {"b", ParamKind::Tensor}, {"mask", ParamKind::Tensor}};
  op.shape = maskedShape;
  op.reference = maskedReference;
  op.batch = expand([](ExpandBuilder &b, ir::ApplyOp apply) -> std::vector<Value> {
    Value a = apply.getOperand(0);
    Value read = applyOne(b, "where", {apply.getOperand(2), a, number(b, 0, dtypeOf(a))});
    return {applyOne(b, "matmul_seen", {read, apply.getOperand(1)})};
  });
  ops.push_back(std::move(op));
}

} // namespace

void addProducts(std::vector<Op> &ops) {
  auto reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                      std::span<RefTensor> results) {
    return matmulReference(operands[0], operands[1], arithmetic, results[0]);
  };
  std::vector<Param> params = {{"a", ParamKind::Tensor}, {"b", ParamKind::Tensor}};

  Op matmul;
  matmul.name = "matmul";
  matmul.summary = "the matrix product, of vectors, matrices or batches; also written `a @ b`";
  matmul.params = params;
  matmul.shape = matmulShape;
  matmul.reference = reference;
  matmul.batch = Product{};
  matmul.productFlop = matmulFlop;
  matmul.bf16Form = matmul.bf16OwnForm = "matmul_bf16";

  auto ofRounded = [](bool leavesOutZeros) -> Reference {
    return [leavesOutZeros](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                            std::span<RefTensor> results) {
      return matmulBf16Reference(operands, arithmetic, results[0], leavesOutZeros);
    };
  };
  Op narrow = matmul;
  narrow.name = matmul.bf16Form;
  narrow.summary = "the matrix product of factors rounded to bf16, summed in f32";
  narrow.reference = ofRounded(false);
  narrow.shape = matmulBf16Shape;
  narrow.batch = Product{.bf16 = true};
  narrow.bf16Form = narrow.bf16OwnForm = "";
  narrow.ofFactors = "matmul_factors";
  narrow.internal = true;

  Op scores = matmul;
  scores.name = "matmul_scores";
  scores.summary = "the matrix product, whose gradients do not read what got none";
  scores.shape = matmulOfMatricesShape;
  scores.bf16Form = scores.bf16OwnForm = "matmul_scores_bf16";
  scores.internal = true;

  Op seen = matmul;
  seen.name = "matmul_seen";
  seen.summary = "the matrix product without the steps with a factor that is 0";
  seen.shape = matmulOfMatricesShape;
  seen.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                      std::span<RefTensor> results) {
    return matmulReference(operands[0], operands[1], arithmetic, results[0], true);
  };
  seen.batch = Product{.leavesOutZeros = true};
  seen.bf16Form = "";
  seen.bf16OwnForm = "matmul_seen_bf16";
  seen.internal = true;

  Op narrowScores = narrow;
  narrowScores.name = scores.bf16OwnForm;
  narrowScores.summary = scores.summary + ", of factors rounded to bf16";
  narrowScores.shape = matmulOfMatricesShape;

  Op narrowSeen = narrowScores;
  narrowSeen.name = seen.bf16OwnForm;
  narrowSeen.summary = seen.summary + ", of factors rounded to bf16";
  narrowSeen.reference = ofRounded(true);
  narrowSeen.batch = Product{.bf16 = true, .leavesOutZeros = true};
  narrowSeen.ofFactors = "matmul_seen_factors";

  Op ofFactors = narrow;
  ofFactors.name = narrow.ofFactors;
  ofFactors.summary = "the matrix product of tensors of factors in bf16, summed in f32";
  ofFactors.shape = factorsShape;
  ofFactors.ofFactors = "";

  Op seenOfFactors = ofFactors;
  seenOfFactors.name = narrowSeen.ofFactors;
  seenOfFactors.summary = ofFactors.summary + ", without the steps with a factor that is 0";
  seenOfFactors.reference = narrowSeen.reference;
  seenOfFactors.batch = narrowSeen.batch;
  for (Op *op :
       {&matmul, &narrow, &scores, &seen, &narrowScores, &narrowSeen, &ofFactors, &seenOfFactors})
    ops.push_back(std::move(*op));

  addMasked(ops);

  Op dot;
  dot.name = "dot";
  dot.summary = "the dot product of two vectors";
  dot.params = params;
  dot.shape = dotShape;
  dot.reference = reference;
  dot.batch = expand([](ExpandBuilder &b, ir::ApplyOp op) -> std::vector<Value> {
    return {applyOne(b, "matmul", op.getOperands())};
  });
  ops.push_back(std::move(dot));

  Op outer;
  outer.name = "outer";
  outer.summary = "the products of every element of a with every element of b";
  outer.params = params;
  outer.shape = outerShape;
  outer.reference = [](const RefTensors &operands, const Attrs &, const Arithmetic &arithmetic,
                       std::span<RefTensor> results) {
    size_t n = 0;
    for (double x : operands[0].data)
      for (double y : operands[1].data)
        results[0].data[n++] = arithmetic.round(x * y);
    return std::string();
  };
  outer.batch = expand([](ExpandBuilder &b, ir::ApplyOp op) -> std::vector<Value> {
    Value column = insertAxis(b, op.getOperands()[0], 1);
    return {applyOne(b, "mul", {column, op.getOperands()[1]})};
  });
  ops.push_back(std::move(outer));
}

} // namespace sheaf::ops
