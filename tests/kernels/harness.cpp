//===- harness.cpp - Runs kernels on random records -----------------------===//

#include "tests/kernels/harness.h"

#include "compiler/codegen/Jit.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/kernels/cpu/Cpu.h"
#include "compiler/ops/Verify.h"
#include "compiler/target/Target.h"
#include "runtime/cpu/tiles.h"
#include "runtime/cpu/weights.h"
#include "runtime/model/convert.h"
#include "runtime/model/error.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;

namespace sheaf::test {
namespace {

/// Granules between tensors that nothing may write.
constexpr int64_t kGuardGranules = 4;
/// Whole vectors may be read beyond the last row.
constexpr int64_t kReadSlack = 4096;
constexpr int64_t kScratchGuard = 256;

enum class Precision { F64, F32 };

struct Rounding : ops::Arithmetic {
  Precision precision;
  Rounding(Precision precision) : precision(precision) {}
  double round(double x) const override {
    return precision == Precision::F64 ? x : static_cast<float>(x);
  }
  double roundFactor(double x) const override {
    if (precision == Precision::F64)
      return x;
    return rt::bf16ToFloat(rt::floatToFactor(static_cast<float>(x)));
  }
};

double roundTo(ops::DType dtype, double x) {
  switch (dtype) {
  case ops::DType::F32:
    return static_cast<float>(x);
  case ops::DType::BF16:
    return rt::bf16ToFloat(rt::floatToBF16(static_cast<float>(x)));
  case ops::DType::F16:
    return rt::f16ToFloat(rt::floatToF16(static_cast<float>(x)));
  default:
    return x;
  }
}

template <typename T> void put(uint8_t *at, T value) { std::memcpy(at, &value, sizeof value); }
template <typename T> T get(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void writeElement(uint8_t *at, ops::DType dtype, double v) {
  switch (dtype) {
  case ops::DType::F32:
    return put(at, static_cast<float>(v));
  case ops::DType::BF16:
    return put(at, rt::floatToBF16(static_cast<float>(v)));
  case ops::DType::F16:
    return put(at, rt::floatToF16(static_cast<float>(v)));
  case ops::DType::I64:
    return put(at, static_cast<int64_t>(v));
  default:
    return put(at, static_cast<int32_t>(v));
  }
}

double readElement(const uint8_t *at, ops::DType dtype) {
  switch (dtype) {
  case ops::DType::F32:
    return get<float>(at);
  case ops::DType::BF16:
    return rt::bf16ToFloat(get<uint16_t>(at));
  case ops::DType::F16:
    return rt::f16ToFloat(get<uint16_t>(at));
  case ops::DType::I64:
    return static_cast<double>(get<int64_t>(at));
  default:
    return get<int32_t>(at);
  }
}

rt::DType runtimeType(ops::DType dtype) { return static_cast<rt::DType>(dtype); }
ops::DType dtypeOf(Value value) { return ops::operandType(value.getType()).tensor()->dtype; }

/// Calls visit(byte offset, element number) for every element of a tensor in row layout.
template <typename Visit>
void forEachElement(ops::DType dtype, const std::vector<int64_t> &shape, Visit visit) {
  int64_t last = shape.empty() ? 1 : shape.back(), rows = 1, number = 0;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < last; ++column)
      visit(row * rt::rowGranules(last, runtimeType(dtype)) * rt::kGranuleBytes +
                column * rt::dtypeBytes(runtimeType(dtype)),
            number++);
}

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

OwningOpRef<ModuleOp> parse(const std::string &text, MLIRContext &context) {
  DialectRegistry registry;
  ops::registerDialects(registry);
  context.disableMultithreading();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    throw std::runtime_error("the module does not parse");
  return module;
}

ops::RefTensor hostNumber(double value, bool isFloat) {
  ops::RefTensor t;
  t.host = true;
  t.dtype = isFloat ? ops::DType::F32 : ops::DType::I64;
  t.data = {value};
  return t;
}

} // namespace

struct KernelRun::Impl {
  struct Record {
    std::vector<ops::RefTensor> arguments;
    std::map<std::string, int64_t> symbols;
    std::vector<std::vector<int64_t>> shapes; ///< of reserved buffers
    std::vector<uint32_t> ids;
  };

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  rt::Target target;
  std::vector<kernels::Kernel> kernels;
  std::unique_ptr<driver::Jit> jit;
  rt::KernelFn fn = nullptr;

  std::mt19937 random;
  std::vector<uint8_t> contents; ///< of the row space before a run
  std::vector<bool> writable;    ///< its granules
  rt::AlignedBytes rows;
  rt::Model model;
  rt::MemoryMeter meter{UINT64_MAX};
  rt::MemoryKind packedBytes;
  std::unique_ptr<rt::PackedWeights> packed;
  std::vector<ops::RefTensor> weights;
  std::vector<Record> records;
  std::vector<int32_t> words;
  int64_t recordWords = 0;
  uint64_t temporaryBytes = 0; ///< of the largest record

  const kernels::Kernel &kernel() const { return kernels[0]; }
  const kernels::cpu::KernelCode &code() const { return kernels::cpu::codeOf(kernel()); }
  Block &body() const {
    ir::BlockOp block = kernels[0].block;
    return block.getBody().front();
  }
  unsigned numArgs() const {
    ir::BlockOp block = kernels[0].block;
    return static_cast<unsigned>(block.getNumArgs());
  }

  uint32_t reserve(int64_t granules, bool isResult) {
    uint32_t id = static_cast<uint32_t>(writable.size());
    writable.resize(writable.size() + static_cast<size_t>(granules), isResult);
    return id;
  }
  void guard() {
    writable.resize(writable.size() + kGuardGranules, false);
    contents.resize(writable.size() * rt::kGranuleBytes, 0xff);
  }
  uint32_t place(const ops::RefTensor &t) {
    uint32_t id = reserve(rt::tensorGranules(t.shape, runtimeType(t.dtype)), false);
    guard();
    forEachElement(t.dtype, t.shape, [&](int64_t offset, int64_t i) {
      writeElement(&contents[id * rt::kGranuleBytes + static_cast<size_t>(offset)], t.dtype,
                   t.data[static_cast<size_t>(i)]);
    });
    return id;
  }
  ops::RefTensor randomTensor(ops::DType dtype, std::vector<int64_t> shape, const Inputs &inputs) {
    ops::RefTensor t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    t.data.resize(static_cast<size_t>(t.size()));
    std::normal_distribution<double> normal(0, 0.5);
    std::uniform_int_distribution<int64_t> integer(inputs.least, inputs.most);
    for (double &x : t.data)
      x = ops::isFloat(dtype)
              ? roundTo(dtype, inputs.element ? inputs.element(random) : normal(random))
          : dtype == ops::DType::Bool ? static_cast<double>(random() % 2)
                                      : static_cast<double>(integer(random));
    return t;
  }

  void makeWeights(const Inputs &inputs);
  void makeRecord(int64_t number, const Inputs &inputs);
  int64_t value(const Dim &dim, const Record &record) const {
    return dim
        .substitute([&](const std::string &symbol) -> std::optional<Dim> {
          auto it = record.symbols.find(symbol);
          return it == record.symbols.end() ? std::nullopt : std::optional<Dim>(it->second);
        })
        .constant();
  }
  llvm::DenseMap<Value, ops::RefTensor> reference(const Record &record, Precision precision) const;
};

struct TilingPlan::Impl {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  rt::Target target;
};

TilingPlan::TilingPlan(const std::string &text, const std::string &cpu)
    : impl_(std::make_unique<Impl>()) {
  impl_->module = parse(text, impl_->context);
  impl_->target = target::detect(cpu);
}
TilingPlan::~TilingPlan() = default;

std::string TilingPlan::tiling(const kernels::Tuning &tuning) const {
  ir::BlockOp block = *impl_->module->getOps<ir::BlockOp>().begin();
  return kernels::cpu::planKernel(block, impl_->target, {}, tuning).tiling;
}

KernelRun::KernelRun(const std::string &text, const std::string &cpu, std::set<std::string> without,
                     const kernels::Tuning &tuning)
    : impl_(std::make_unique<Impl>()) {
  Impl &m = *impl_;
  m.module = parse(text, m.context);
  m.target = target::detect(cpu);
  for (auto block : m.module->getOps<ir::BlockOp>())
    m.kernels.push_back(kernels::cpu::planKernel(block, m.target, without, tuning));
  auto emitted = kernels::cpu::emitKernels(m.kernels, m.target, m.context);
  if (failed(verify(*emitted)))
    throw std::runtime_error("the emitted kernel does not verify");
  bool dump = std::getenv("SHEAF_DUMP");
  if (dump)
    emitted->dump();
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto lowered = kernels::cpu::lowerKernels(*emitted, m.target, *llvmContext);
  if (dump)
    lowered->print(llvm::errs(), nullptr);
  std::vector<driver::CodeModule> modules(1);
  modules[0].context = std::move(llvmContext);
  modules[0].module = std::move(lowered);
  m.jit = std::make_unique<driver::Jit>(driver::compileModules(std::move(modules), m.target, 1));
  m.fn = reinterpret_cast<rt::KernelFn>(m.jit->address(0, m.kernel().symbol));
}
KernelRun::~KernelRun() = default;

const kernels::Kernel &KernelRun::kernel() const { return impl_->kernel(); }
const ops::RefTensor &KernelRun::argument(int64_t record, size_t arg) const {
  return impl_->records[static_cast<size_t>(record)].arguments[arg];
}
const ops::RefTensor &KernelRun::weight(size_t number) const { return impl_->weights[number]; }

void KernelRun::Impl::makeWeights(const Inputs &inputs) {
  for (BlockArgument arg : body().getArguments().drop_front(numArgs())) {
    auto type = cast<RankedTensorType>(arg.getType());
    weights.push_back(randomTensor(dtypeOf(arg), type.getShape().vec(), inputs));
    rt::ParamDesc param;
    param.dtype = runtimeType(weights.back().dtype);
    param.shape = weights.back().shape;
    param.id = place(weights.back());
    model.params.push_back(std::move(param));
  }
  rt::KernelDesc desc;
  desc.name = kernel().symbol;
  model.kernels.push_back(std::move(desc));
  rt::cpuCode(model).kernels.back() = code();
}

void KernelRun::Impl::makeRecord(int64_t number, const Inputs &inputs) {
  Record record;
  auto putNumber = [&](int64_t bits) {
    words.push_back(static_cast<int32_t>(bits));
    words.push_back(static_cast<int32_t>(bits >> 32));
  };
  for (BlockArgument arg : body().getArguments().take_front(numArgs())) {
    std::string name = std::to_string(arg.getArgNumber());
    if (auto type = dyn_cast<RankedTensorType>(arg.getType())) {
      std::vector<int64_t> shape = type.getShape().vec();
      for (unsigned axis = 0; axis < shape.size(); ++axis)
        if (ShapedType::isDynamic(shape[axis]))
          record.symbols[name + "." + std::to_string(axis)] = shape[axis] =
              inputs.extent(number, arg.getArgNumber(), axis);
      record.arguments.push_back(randomTensor(dtypeOf(arg), shape, inputs));
      words.push_back(static_cast<int32_t>(place(record.arguments.back())));
      for (unsigned axis = 0; axis < shape.size(); ++axis)
        if (type.isDynamicDim(axis))
          words.push_back(static_cast<int32_t>(shape[axis]));
    } else if (arg.getType().isF64()) {
      double value = 0.25 * static_cast<double>(random() % 8);
      record.arguments.push_back(hostNumber(value, true));
      putNumber(std::bit_cast<int64_t>(value));
    } else {
      int64_t value = inputs.number(number, arg.getArgNumber());
      record.arguments.push_back(hostNumber(static_cast<double>(value), false));
      record.arguments.back().key = value;
      record.symbols[name] = value;
      putNumber(value);
    }
  }
  uint32_t out = 0;
  for (auto [i, buffer] : llvm::enumerate(kernel().results)) {
    std::vector<int64_t> shape;
    for (const Dim &dim : buffer.shape)
      shape.push_back(value(dim, record));
    uint32_t id = reserve(rt::tensorGranules(shape, runtimeType(buffer.dtype)), true);
    out = i ? out : id;
    record.ids.push_back(id);
    record.shapes.push_back(std::move(shape));
  }
  guard();
  uint64_t temporaries = 0;
  for (const kernels::RecordBuffer &buffer : kernel().temporaries) {
    std::vector<int64_t> shape;
    for (const Dim &dim : buffer.shape)
      shape.push_back(value(dim, record));
    temporaries += rt::tensorGranules(shape, runtimeType(buffer.dtype)) * rt::kGranuleBytes;
  }
  temporaryBytes = std::max(temporaryBytes, temporaries);
  words.push_back(static_cast<int32_t>(out));
  recordWords = static_cast<int64_t>(words.size()) / (number + 1);
  records.push_back(std::move(record));
}

void KernelRun::fill(int64_t count, const Inputs &inputs, unsigned seed) {
  Impl &m = *impl_;
  m.random.seed(seed);
  m.guard();
  m.makeWeights(inputs);
  for (int64_t r = 0; r < count; ++r)
    m.makeRecord(r, inputs);
  m.rows = rt::allocateAligned(m.contents.size() + kReadSlack);
  std::memcpy(m.rows.get(), m.contents.data(), m.contents.size());
  std::memset(m.rows.get() + m.contents.size(), 0xff, kReadSlack);
  m.packed = std::make_unique<rt::PackedWeights>(m.model, m.rows.get(), m.meter, m.packedBytes);
  m.packed->pack();
}

testing::AssertionResult KernelRun::run(int64_t batch, int64_t parts) {
  Impl &m = *impl_;
  std::memcpy(m.rows.get(), m.contents.data(), m.contents.size());
  uint64_t scratchBytes = m.code().scratchBytes + m.temporaryBytes;
  rt::AlignedBytes scratch = rt::allocateAligned(scratchBytes + kScratchGuard);
  std::memset(scratch.get(), 0xff, scratchBytes + kScratchGuard);
  int64_t panels = m.code().panels, count = static_cast<int64_t>(m.records.size());
  if (panels == 0)
    parts = 1;
  // Parts may run in any order, and walk panels either way.
  bool back = false;
  for (int64_t begin = 0; begin < count; begin += batch)
    for (int64_t part = parts; part-- > 0;) {
      int64_t first = panels * part / parts, last = panels * (part + 1) / parts;
      if (m.code().serpentine && (back = !back))
        std::tie(first, last) = std::pair(std::max<int64_t>(last, 1), first);
      m.fn(m.words.data(), begin, std::min(count, begin + batch), first, last, m.rows.get(),
           m.packed->of(0).data(), scratch.get());
    }
  for (int64_t i = 0; i < kScratchGuard; ++i)
    if (scratch[scratchBytes + static_cast<uint64_t>(i)] != 0xff)
      return testing::AssertionFailure() << "written " << i << " bytes beyond the scratch memory";
  for (size_t granule = 0; granule < m.writable.size(); ++granule)
    if (!m.writable[granule] &&
        std::memcmp(m.rows.get() + granule * rt::kGranuleBytes,
                    m.contents.data() + granule * rt::kGranuleBytes, rt::kGranuleBytes) != 0)
      return testing::AssertionFailure()
             << "written to granule " << granule << ", which is no result";
  return testing::AssertionSuccess();
}

Results KernelRun::results(int64_t number) const {
  Impl &m = *impl_;
  const Impl::Record &record = m.records[static_cast<size_t>(number)];
  Results out(m.body().getTerminator()->getNumOperands());
  for (size_t i = 0; i < out.size(); ++i) {
    ops::DType dtype = m.kernel().results[i].dtype;
    forEachElement(dtype, record.shapes[i], [&](int64_t offset, int64_t) {
      out[i].push_back(
          readElement(m.rows.get() + record.ids[i] * rt::kGranuleBytes + offset, dtype));
    });
  }
  return out;
}

llvm::DenseMap<Value, ops::RefTensor> KernelRun::Impl::reference(const Record &record,
                                                                 Precision precision) const {
  llvm::DenseMap<Value, ops::RefTensor> values;
  for (BlockArgument arg : body().getArguments())
    values[arg] = arg.getArgNumber() < numArgs() ? record.arguments[arg.getArgNumber()]
                                                 : weights[arg.getArgNumber() - numArgs()];
  kernels::BlockShapes shapes(kernel().block);
  for (Operation &op : body().without_terminator()) {
    auto number = [&](unsigned operand) { return values.lookup(op.getOperand(operand)).data[0]; };
    if (auto dim = dyn_cast<ir::DimOp>(op)) {
      values[dim.getResult()] = hostNumber(
          static_cast<double>(value(shapes.of(dim.getTensor())[dim.getAxis()], record)), false);
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto real = dyn_cast<FloatAttr>(constant.getValue());
      values[constant.getResult()] =
          real ? hostNumber(real.getValueAsDouble(), true)
               : hostNumber(static_cast<double>(cast<IntegerAttr>(constant.getValue()).getInt()),
                            false);
      continue;
    }
    if (isa<arith::MulIOp, arith::AddIOp>(op)) {
      values[op.getResult(0)] =
          hostNumber(isa<arith::MulIOp>(op) ? number(0) * number(1) : number(0) + number(1), false);
      continue;
    }
    auto apply = cast<ir::ApplyOp>(op);
    const ops::Op *recordOf = ops::OpTable::get().find(apply.getOp());
    auto parts = std::get<ops::ApplyParts>(ops::takeApart(
        *recordOf, apply->getOperandTypes(), apply.getAttrs(), apply->getResultTypes()));
    std::vector<ops::RefTensor> operands;
    for (unsigned i = 0; i < parts.operands.size(); ++i)
      operands.push_back(values[apply.getOperand(i)]);
    for (auto &extent : parts.extents) {
      Dim v(static_cast<int64_t>(number(static_cast<unsigned>(extent.operand))));
      if (extent.position)
        std::get<std::vector<Dim>>(parts.attrs[extent.param])[*extent.position] = v;
      else
        parts.attrs[extent.param] = v;
    }
    std::vector<ops::RefTensor> results;
    for (Value result : apply->getResults()) {
      ops::RefTensor t;
      t.dtype = dtypeOf(result);
      for (const Dim &dim : shapes.of(result))
        t.shape.push_back(value(dim, record));
      t.data.resize(static_cast<size_t>(t.size()));
      results.push_back(std::move(t));
    }
    std::string error = recordOf->reference(operands, parts.attrs, Rounding(precision), results);
    if (!error.empty())
      throw std::runtime_error(apply.getOp().str() + ": " + error);
    for (auto [value, t] : llvm::zip(apply->getResults(), results)) {
      if (precision == Precision::F32)
        for (double &x : t.data)
          x = roundTo(t.dtype, x);
      values[value] = std::move(t);
    }
  }
  return values;
}

testing::AssertionResult KernelRun::agree(const Results &results, int64_t number) const {
  Impl &m = *impl_;
  const Impl::Record &record = m.records[static_cast<size_t>(number)];
  auto exact = m.reference(record, Precision::F64), rounded = m.reference(record, Precision::F32);
  bool narrow = llvm::any_of(exact, [](auto &entry) {
    return ops::isFloat(entry.second.dtype) && entry.second.dtype != ops::DType::F32;
  });
  m.body().walk([&](ir::ApplyOp apply) {
    const auto *product =
        std::get_if<ops::Product>(&ops::OpTable::get().find(apply.getOp())->batch);
    narrow |= product && product->bf16;
  });
  for (auto [i, value] : llvm::enumerate(m.body().getTerminator()->getOperands())) {
    const std::vector<double> &expected = exact[value].data, &inF32 = rounded[value].data;
    if (results[i].size() != expected.size())
      return testing::AssertionFailure() << "result " << i << " has " << results[i].size()
                                         << " elements, not " << expected.size();
    double scale = 1, error = 0;
    for (size_t j = 0; j < expected.size(); ++j)
      if (std::isfinite(expected[j])) {
        scale = std::max(scale, std::abs(expected[j]));
        error = std::max(error, std::abs(expected[j] - inF32[j]));
      }
    double tolerance = 0;
    if (ops::isFloat(exact[value].dtype))
      tolerance = std::max((narrow ? 2e-2 : 1e-5) * scale, 4 * error);
    for (size_t j = 0; j < expected.size(); ++j)
      if (!equal(results[i][j], expected[j]) &&
          !(std::abs(results[i][j] - expected[j]) <= tolerance))
        return testing::AssertionFailure()
               << "record " << number << ", result " << i << ", element " << j << ": "
               << results[i][j] << " instead of " << expected[j] << " (tolerance " << tolerance
               << ")";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult KernelRun::flopAgrees(int64_t number) const {
  Impl &m = *impl_;
  double counted = 0, expected = 0;
  for (const rt::FlopTerm &term : m.kernel().flop) {
    double n = term.coefficient;
    for (uint32_t word : term.extentWords)
      n *= m.words[static_cast<size_t>(number * m.recordWords + word)];
    counted += n;
  }
  const Impl::Record &record = m.records[static_cast<size_t>(number)];
  auto values = m.reference(record, Precision::F64);
  m.body().walk([&](ir::ApplyOp apply) {
    const ops::Op *op = ops::OpTable::get().find(apply.getOp());
    if (!op->productFlop)
      return;
    std::vector<std::vector<int64_t>> shapes;
    for (Value operand : apply.getOperands())
      shapes.push_back(values[operand].shape);
    expected += op->productFlop(shapes);
  });
  if (counted != expected)
    return testing::AssertionFailure() << "counts " << counted << " FLOP instead of " << expected;
  return testing::AssertionSuccess();
}

bool runsHere(const std::string &cpu) {
  try {
    rt::Target target = target::detect(cpu);
    target::checkRunsHere(target);
    return !target.tiles || rt::allowTiles();
  } catch (const UserError &) {
    return false;
  }
}

testing::AssertionResult same(const Results &a, const Results &b) {
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j)
      if (!equal(a[i][j], b[i][j]) || std::signbit(a[i][j]) != std::signbit(b[i][j]))
        if (!std::isnan(a[i][j]))
          return testing::AssertionFailure() << "result " << i << ", element " << j << ": "
                                             << a[i][j] << " and " << b[i][j] << " differ";
  return testing::AssertionSuccess();
}

testing::AssertionResult check(const std::string &module, const std::string &cpu,
                               const std::set<std::string> &without, int64_t records,
                               const Inputs &inputs, std::vector<Results> &results,
                               const kernels::Tuning &tuning) {
  auto failure = [&](const testing::AssertionResult &why) {
    return testing::AssertionFailure()
           << cpu << (without.empty() ? "" : ", without " + *without.begin())
           << (tuning == kernels::Tuning() ? "" : ", " + tuning.text()) << ": " << why.message();
  };
  KernelRun run(module, cpu, without, tuning);
  run.fill(records, inputs, 1);
  if (auto ok = run.run(records, 1); !ok)
    return failure(ok);
  for (int64_t r = 0; r < records; ++r) {
    results.push_back(run.results(r));
    if (auto ok = run.agree(results.back(), r); !ok)
      return failure(ok);
    if (auto ok = run.flopAgrees(r); !ok)
      return failure(ok);
  }
  for (auto [batch, parts] : {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {records, 3}}) {
    if (auto ok = run.run(batch, parts); !ok)
      return failure(ok);
    for (int64_t r = 0; r < records; ++r)
      if (auto ok = same(run.results(r), results[static_cast<size_t>(r)]); !ok)
        return failure(ok) << " in batches of " << batch << " and in one of " << records;
  }
  return testing::AssertionSuccess();
}

} // namespace sheaf::test
