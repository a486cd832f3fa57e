//===- harness.cpp - Runs kernels on random records -----------------------===//

#include "tests/kernels/harness.h"

#include "compiler/driver/Jit.h"
#include "compiler/ops/Verify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace sheaf::test {
namespace {

struct Arith64 : ops::Arithmetic {
  double round(double x) const override { return x; }
};

int64_t innerRows(const std::vector<int64_t> &shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

void writeElement(uint8_t *at, ops::DType dtype, double v) {
  if (dtype == ops::DType::F32) {
    float f = static_cast<float>(v);
    std::memcpy(at, &f, 4);
  } else if (dtype == ops::DType::I64) {
    int64_t i = static_cast<int64_t>(v);
    std::memcpy(at, &i, 8);
  } else {
    int32_t i = static_cast<int32_t>(v);
    std::memcpy(at, &i, 4);
  }
}

double readElement(const uint8_t *at, ops::DType dtype) {
  if (dtype == ops::DType::F32) {
    float f;
    std::memcpy(&f, at, 4);
    return f;
  }
  if (dtype == ops::DType::I64) {
    int64_t i;
    std::memcpy(&i, at, 8);
    return static_cast<double>(i);
  }
  int32_t i;
  std::memcpy(&i, at, 4);
  return i;
}

} // namespace

struct KernelRun::Impl {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  kernels::Target target;
  std::vector<kernels::Kernel> kernels;
  std::unique_ptr<driver::Jit> jit;
  rt::KernelFn fn = nullptr;
  std::vector<uint8_t> storage;
  uint8_t *rows = nullptr;
  std::vector<int32_t> records;
  int64_t words = 0, count = 0;
  std::vector<ops::RefTensor> weights;
  std::vector<std::vector<ops::RefTensor>> arguments;
  std::vector<std::vector<std::vector<int64_t>>> shapes; ///< of reserved buffers
  std::vector<std::vector<uint32_t>> ids;
  std::vector<std::vector<float>> packed;
  std::vector<const void *> weightPointers;
  std::mt19937 random;

  ir::BlockOp block() { return kernels[0].block; }
  ops::RefTensor randomTensor(ops::DType dtype, std::vector<int64_t> shape, int64_t limit) {
    ops::RefTensor t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    int64_t n = 1;
    for (int64_t extent : t.shape)
      n *= extent;
    std::normal_distribution<double> normal(0, 0.5);
    for (int64_t i = 0; i < n; ++i)
      t.data.push_back(dtype == ops::DType::F32 ? static_cast<float>(normal(random))
                       : dtype == ops::DType::Bool
                           ? random() % 2
                           : random() % static_cast<uint64_t>(limit));
    return t;
  }
  uint32_t place(const ops::RefTensor &t, uint32_t &next) {
    uint32_t id = next;
    auto dtype = static_cast<rt::DType>(t.dtype);
    int64_t last = t.shape.empty() ? 1 : t.shape.back();
    int64_t rowCount = t.shape.empty() ? 1 : innerRows(t.shape);
    for (int64_t row = 0; row < rowCount; ++row) {
      uint8_t *at = rows + static_cast<int64_t>(next) * 64;
      for (int64_t i = 0; i < last; ++i)
        writeElement(at + i * rt::dtypeBytes(dtype), t.dtype, t.data[row * last + i]);
      next += static_cast<uint32_t>(rt::rowGranules(last, dtype));
    }
    return id;
  }
};

KernelRun::KernelRun(const std::string &text, const std::string &cpu,
                     std::set<std::string> without)
    : impl_(std::make_unique<Impl>()) {
  Impl &m = *impl_;
  DialectRegistry registry;
  ir::registerDialects(registry);
  m.context.appendDialectRegistry(registry);
  m.context.loadAllAvailableDialects();
  m.module = parseSourceString<ModuleOp>(text, &m.context);
  if (!m.module)
    throw std::runtime_error("the module does not parse");
  m.target = kernels::detectTarget(cpu);
  m.kernels = kernels::planKernels(*m.module, m.target, without);
  auto emitted = kernels::emitKernels(m.kernels, m.target, m.context);
  if (getenv("SHEAF_DUMP"))
    emitted->dump();
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto lowered = kernels::lowerKernels(*emitted, m.target, *llvmContext);
  if (getenv("SHEAF_DUMP"))
    lowered->print(llvm::errs(), nullptr);
  std::vector<driver::CodeModule> modules(1);
  modules[0].context = std::move(llvmContext);
  modules[0].module = std::move(lowered);
  m.jit = driver::Jit::compile(
      std::move(modules), {driver::hostTriple(), m.target.cpu, m.target.features}, 1);
  m.fn = reinterpret_cast<rt::KernelFn>(m.jit->address(m.kernels[0].symbol));
}
KernelRun::~KernelRun() = default;

const kernels::Kernel &KernelRun::kernel() const { return impl_->kernels[0]; }

void KernelRun::fill(int64_t count, const Extents &extents, int64_t limit, unsigned seed) {
  Impl &m = *impl_;
  const kernels::Kernel &kernel = m.kernels[0];
  m.random.seed(seed);
  m.storage.assign(512 << 20, 0);
  m.rows = m.storage.data() + (64 - reinterpret_cast<uintptr_t>(m.storage.data()) % 64) % 64;
  // Padding and fresh rows hold NaN: nothing may depend on them.
  std::memset(m.rows, 0xff, m.storage.size() - 64);
  uint32_t next = 0;
  m.count = count;
  m.words = 0;
  for (auto &word : kernel.layout)
    m.words += word.kind == rt::RecordWord::Int || word.kind == rt::RecordWord::Float ? 2 : 1;
  Block &body = m.block().getBody().front();
  unsigned numArgs = static_cast<unsigned>(m.block().getNumArgs());

  std::vector<uint32_t> weightIds;
  for (BlockArgument arg : body.getArguments().drop_front(numArgs)) {
    auto type = cast<RankedTensorType>(arg.getType());
    m.weights.push_back(
        m.randomTensor(ops::operandType(type).tensor()->dtype, type.getShape().vec(), limit));
    weightIds.push_back(m.place(m.weights.back(), next));
  }
  for (const rt::WeightUse &use : kernel.weights) {
    if (use.kind == rt::WeightUse::Raw) {
      m.packed.emplace_back();
      m.weightPointers.push_back(m.rows + static_cast<int64_t>(weightIds[use.param]) * 64);
      continue;
    }
    std::vector<float> out;
    int64_t step = use.lanes * use.vectors;
    for (int64_t panel = 0; panel * step < use.width; ++panel) {
      int64_t depth = 0;
      for (auto &segment : use.views[0].segments)
        depth += segment.kEnd - segment.kBegin;
      for (int64_t k = 0; k < depth; ++k)
        for (auto &view : use.views)
          for (int64_t c = 0; c < step; ++c) {
            int64_t column = panel * step + c, rest = k;
            float v = 0;
            for (auto &segment : view.segments) {
              int64_t n = segment.kEnd - segment.kBegin;
              if (rest < n && column < use.width) {
                const ops::RefTensor &w = m.weights[segment.param];
                int64_t row = segment.kBegin + rest, col = view.column + column;
                if (segment.transposed)
                  std::swap(row, col);
                int64_t width = w.shape.back();
                v = static_cast<float>(w.shape.size() == 1 ? w.data[col]
                                                           : w.data[row * width + col]);
              }
              rest -= n;
              if (rest < 0)
                break;
            }
            out.push_back(v);
          }
    }
    out.resize(out.size() + 256);
    m.packed.push_back(std::move(out));
    m.weightPointers.push_back(m.packed.back().data());
  }
  for (size_t i = 0; i < m.packed.size(); ++i)
    if (!m.packed[i].empty())
      m.weightPointers[i] = m.packed[i].data();

  m.records.resize(count * m.words);
  for (int64_t r = 0; r < count; ++r) {
    int32_t *words = &m.records[r * m.words];
    std::vector<ops::RefTensor> arguments;
    std::map<std::string, int64_t> symbols;
    for (BlockArgument arg : body.getArguments().take_front(numArgs)) {
      std::string name = std::to_string(arg.getArgNumber());
      if (auto type = dyn_cast<RankedTensorType>(arg.getType())) {
        std::vector<int64_t> shape = type.getShape().vec();
        for (unsigned axis = 0; axis < shape.size(); ++axis)
          if (ShapedType::isDynamic(shape[axis]))
            symbols[name + "." + std::to_string(axis)] = shape[axis] =
                extents(r, arg.getArgNumber(), axis);
        arguments.push_back(
            m.randomTensor(ops::operandType(type).tensor()->dtype, shape, limit));
        *words++ = static_cast<int32_t>(m.place(arguments.back(), next));
        for (unsigned axis = 0; axis < shape.size(); ++axis)
          if (type.isDynamicDim(axis))
            *words++ = static_cast<int32_t>(shape[axis]);
      } else {
        ops::RefTensor t;
        t.host = true;
        bool isFloat = arg.getType().isF64();
        double v = isFloat ? 0.25 * static_cast<double>(m.random() % 8)
                           : static_cast<double>(m.random() % static_cast<uint64_t>(limit));
        t.dtype = isFloat ? ops::DType::F32 : ops::DType::I64;
        t.data = {v};
        arguments.push_back(t);
        int64_t bits = static_cast<int64_t>(v);
        if (isFloat)
          std::memcpy(&bits, &v, 8);
        std::memcpy(words, &bits, 8);
        words += 2;
        symbols[name] = static_cast<int64_t>(v);
      }
    }
    *words = static_cast<int32_t>(next);
    std::vector<std::vector<int64_t>> shapes;
    std::vector<uint32_t> ids;
    for (auto &buffer : kernel.buffers) {
      std::vector<int64_t> shape;
      for (const Dim &dim : buffer.shape)
        shape.push_back(dim.substitute([&](const std::string &s) -> std::optional<Dim> {
                             auto it = symbols.find(s);
                             return it == symbols.end() ? std::nullopt
                                                        : std::optional<Dim>(it->second);
                           }).constant());
      ids.push_back(next);
      next += static_cast<uint32_t>(
          rt::tensorGranules(shape, static_cast<rt::DType>(buffer.dtype)));
      shapes.push_back(shape);
    }
    m.arguments.push_back(std::move(arguments));
    m.shapes.push_back(std::move(shapes));
    m.ids.push_back(std::move(ids));
  }
}

void KernelRun::run(int64_t batch, int64_t parts) {
  Impl &m = *impl_;
  const kernels::Kernel &kernel = m.kernels[0];
  std::vector<uint8_t> scratch(kernel.scratchBytes + 64, 0xff);
  uint8_t *aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  int64_t panels = kernel.panels;
  if (panels == 0)
    parts = 1;
  for (int64_t begin = 0; begin < m.count; begin += batch)
    for (int64_t part = 0; part < parts; ++part)
      m.fn(m.records.data(), begin, std::min(m.count, begin + batch), panels * part / parts,
           panels * (part + 1) / parts, m.rows, m.weightPointers.data(), aligned);
}

std::vector<std::vector<double>> KernelRun::results(int64_t record) const {
  Impl &m = *impl_;
  std::vector<std::vector<double>> out;
  size_t results = m.block().getBody().front().getTerminator()->getNumOperands();
  for (size_t i = 0; i < results; ++i) {
    const auto &shape = m.shapes[record][i];
    ops::DType dtype = m.kernels[0].buffers[i].dtype;
    auto runtime = static_cast<rt::DType>(dtype);
    int64_t last = shape.empty() ? 1 : shape.back();
    int64_t rows = shape.empty() ? 1 : innerRows(shape);
    std::vector<double> values;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t c = 0; c < last; ++c)
        values.push_back(readElement(
            m.rows + (m.ids[record][i] + row * rt::rowGranules(last, runtime)) * 64 +
                c * rt::dtypeBytes(runtime),
            dtype));
    out.push_back(std::move(values));
  }
  return out;
}

std::vector<std::vector<double>> KernelRun::expected(int64_t record) const {
  Impl &m = *impl_;
  llvm::DenseMap<Value, ops::RefTensor> values;
  Block &body = m.block().getBody().front();
  unsigned numArgs = static_cast<unsigned>(m.block().getNumArgs());
  for (BlockArgument arg : body.getArguments())
    values[arg] = arg.getArgNumber() < numArgs ? m.arguments[record][arg.getArgNumber()]
                                               : m.weights[arg.getArgNumber() - numArgs];
  kernels::BlockShapes shapes(m.block());
  std::map<std::string, int64_t> symbols;
  for (unsigned a = 0; a < numArgs; ++a) {
    const ops::RefTensor &t = m.arguments[record][a];
    if (t.host)
      symbols[std::to_string(a)] = static_cast<int64_t>(t.data[0]);
    for (size_t axis = 0; axis < t.shape.size(); ++axis)
      symbols[std::to_string(a) + "." + std::to_string(axis)] = t.shape[axis];
  }
  auto number = [&](const Dim &dim) {
    return dim.substitute([&](const std::string &s) -> std::optional<Dim> {
                auto it = symbols.find(s);
                return it == symbols.end() ? std::nullopt : std::optional<Dim>(it->second);
              }).constant();
  };
  for (Operation &op : body.without_terminator()) {
    if (auto dim = dyn_cast<ir::DimOp>(op)) {
      ops::RefTensor t;
      t.host = true;
      t.dtype = ops::DType::I64;
      t.data = {static_cast<double>(number(shapes.of(dim.getTensor())[dim.getAxis()]))};
      values[dim.getResult()] = t;
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      ops::RefTensor t;
      t.host = true;
      bool isFloat = isa<FloatAttr>(constant.getValue());
      t.dtype = isFloat ? ops::DType::F32 : ops::DType::I64;
      t.data = {isFloat ? cast<FloatAttr>(constant.getValue()).getValueAsDouble()
                        : static_cast<double>(cast<IntegerAttr>(constant.getValue()).getInt())};
      values[constant.getResult()] = t;
      continue;
    }
    auto apply = cast<ir::ApplyOp>(op);
    const ops::Op *recordOf = ops::OpTable::get().find(apply.getOp());
    auto parts = std::get<ops::ApplyParts>(ops::takeApart(
        *recordOf, apply->getOperandTypes(), apply.getAttrs(), apply->getResultTypes()));
    std::vector<ops::RefTensor> operands;
    for (size_t i = 0; i < parts.operands.size(); ++i)
      operands.push_back(values[apply.getOperand(static_cast<unsigned>(i))]);
    for (auto &extent : parts.extents) {
      Dim v(static_cast<int64_t>(
          values[apply.getOperand(static_cast<unsigned>(extent.operand))].data[0]));
      if (extent.position)
        std::get<std::vector<Dim>>(parts.attrs[extent.param])[*extent.position] = v;
      else
        parts.attrs[extent.param] = v;
    }
    std::vector<ops::RefTensor> results;
    for (Value result : apply->getResults()) {
      ops::RefTensor t;
      t.dtype = ops::operandType(result.getType()).tensor()->dtype;
      for (const Dim &dim : shapes.of(result))
        t.shape.push_back(number(dim));
      t.data.resize(t.size());
      results.push_back(std::move(t));
    }
    std::string error = recordOf->reference(operands, parts.attrs, Arith64(), results);
    if (!error.empty())
      throw std::runtime_error(error);
    for (auto [value, t] : llvm::zip(apply->getResults(), results))
      values[value] = std::move(t);
  }
  std::vector<std::vector<double>> out;
  for (Value value : body.getTerminator()->getOperands())
    out.push_back(values[value].data);
  return out;
}

double KernelRun::flop(int64_t record) const {
  Impl &m = *impl_;
  double total = 0;
  for (const rt::FlopTerm &term : m.kernels[0].flop) {
    double n = term.coefficient;
    for (uint32_t word : term.extentWords)
      n *= m.records[record * m.words + word];
    total += n;
  }
  return total;
}

} // namespace sheaf::test
