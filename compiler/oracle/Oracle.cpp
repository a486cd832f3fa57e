//===- Oracle.cpp - The slow, obvious interpreter of Programs -------------===//

#include "compiler/oracle/Oracle.h"

#include "compiler/ir/Program.h"
#include "compiler/oracle/Code.h"
#include "compiler/oracle/Compute.h"
#include "runtime/convert.h"
#include "runtime/keys.h"

#include <deque>
#include <new>

namespace sheaf::oracle {
namespace {

struct ToF32 : ops::Arithmetic {
  double round(double x) const override { return static_cast<float>(x); }
  void roundAll(std::span<double> values) const override {
    for (double &value : values)
      value = static_cast<float>(value);
  }
};
struct ToBf16 : ToF32 {
  double roundFactor(double x) const override {
    return rt::bf16ToFloat(rt::floatToFactor(static_cast<float>(x)));
  }
};
struct ToF64 : ops::Arithmetic {
  double round(double x) const override { return x; }
  void roundAll(std::span<double>) const override {}
};

/// The state of a map, filter, fold or scan.
struct Loop {
  std::vector<Value> items;
  size_t next = 0;
  std::vector<Value> results;
  Value accumulator;
};

/// A block that is being interpreted, at step `at` (or inside that step's regions or callee).
struct Frame {
  const Code *code;
  uint32_t at = 0;
  size_t base; ///< the first slot of its function's activation
  std::unique_ptr<Loop> loop;
};

/// `file.sheaf:12:3: `, when the place is known.
std::string place(mlir::Location location) {
  if (auto at = location->findInstanceOf<mlir::FileLineColLoc>())
    return at.getFilename().str() + ":" + std::to_string(at.getLine()) + ":" +
           std::to_string(at.getColumn()) + ": ";
  return {};
}

/// One run. The stack of open blocks and the slots of open calls are data: recursion of the
/// program takes no machine stack.
class Interpreter {
public:
  Interpreter(const Context &context, const OracleOptions &options)
      : context_(context), options_(options) {}

  std::vector<Value> run(const Function &function, std::vector<Value> args) {
    enter(function, args);
    while (!frames_.empty())
      step();
    return std::move(results_);
  }

  /// Where the run is, for messages.
  std::string here() const {
    if (frames_.empty())
      return {};
    const Frame &frame = frames_.back();
    return place(frame.code->steps[frame.at].op->getLoc());
  }

private:
  Value &slot(const Frame &frame, uint32_t index) { return slots_[frame.base + index]; }

  llvm::SmallVector<Value, 4> read(const Frame &frame, const Step &step) {
    llvm::SmallVector<Value, 4> values;
    for (uint32_t operand : step.operands)
      values.push_back(slot(frame, operand));
    return values;
  }

  void forget(const Frame &frame, const Step &step) {
    for (uint32_t dead : step.deaths)
      slot(frame, dead) = Value();
  }

  void enter(const Function &function, llvm::MutableArrayRef<Value> args) {
    if (++depth_ > options_.maxDepth)
      throw Failure{"the recursion is deeper than " + std::to_string(options_.maxDepth) + " calls"};
    Frame frame{&function.body, 0, slots_.size(), nullptr};
    slots_.resize(slots_.size() + function.slots);
    for (auto [index, arg] : llvm::zip(function.body.args, args))
      slot(frame, index) = std::move(arg);
    frames_.push_back(std::move(frame));
  }

  /// Ends the current step with these results and goes on with the next one.
  template <typename Results> void finish(Results &&results) {
    Frame &frame = frames_.back();
    const Step &step = frame.code->steps[frame.at];
    for (auto [index, value] : llvm::zip(step.results, results))
      slot(frame, index) = std::move(value);
    forget(frame, step);
    ++frame.at;
  }

  void open(const Code &code, std::unique_ptr<Loop> loop = nullptr) {
    frames_.push_back({&code, 0, frames_.back().base, std::move(loop)});
  }

  void step() {
    Frame &frame = frames_.back();
    const Step &step = frame.code->steps[frame.at];
    switch (step.kind) {
    case Step::Kind::Compute:
      return finish(compute(step, read(frame, step), context_));
    case Step::Kind::Apply:
      return finish(applyOperator(step, read(frame, step), context_));
    case Step::Kind::Call:
      return call(frame, step);
    case Step::Kind::If:
      return branch(step, toInt(slot(frame, step.operands[0])) ? 0 : 1);
    case Step::Kind::Match:
      return match(frame, step);
    case Step::Kind::Map:
    case Step::Kind::Filter:
    case Step::Kind::Fold:
    case Step::Kind::Scan:
      return beginLoop(frame, step);
    case Step::Kind::Yield:
      return yield(frame, step);
    case Step::Kind::Return:
      return leave(frame, step);
    }
  }

  void call(Frame &frame, const Step &step) {
    auto args = read(frame, step);
    const Function &callee = *step.callee;
    if (step.isTail) {
      size_t base = frame.base;
      while (!frames_.empty() && frames_.back().base == base)
        frames_.pop_back();
      slots_.resize(base);
      --depth_;
    } else {
      // Before the callee runs: a chain of a million open calls must not hold what none of them
      // needs any more.
      forget(frame, step);
    }
    enter(callee, args);
  }

  void leave(Frame &frame, const Step &step) {
    auto values = read(frame, step);
    slots_.resize(frame.base);
    frames_.pop_back();
    --depth_;
    if (frames_.empty()) {
      results_.assign(values.begin(), values.end());
      return;
    }
    // What dies after a call was forgotten when it began; its own unused results die now.
    Frame &caller = frames_.back();
    const Step &callStep = caller.code->steps[caller.at];
    for (auto [index, value] : llvm::zip(callStep.results, values))
      if (!llvm::is_contained(callStep.deaths, index))
        slot(caller, index) = std::move(value);
    ++caller.at;
  }

  void branch(const Step &step, size_t region) {
    if (const Code *code = step.regions[region].get())
      return open(*code);
    finish(Values());
  }

  void match(Frame &frame, const Step &step) {
    Value scrutinee = slot(frame, step.operands[0]);
    auto cases = mlir::cast<ir::MatchOp>(step.op).getCases();
    size_t arm = 0;
    while (arm < cases.size() && cases[arm] != cell(scrutinee).number)
      ++arm;
    const Code &code = *step.regions[arm];
    open(code);
    for (auto [index, field] : llvm::zip(code.args, cell(scrutinee).children))
      slot(frames_.back(), index) = field;
  }

  void beginLoop(Frame &frame, const Step &step) {
    auto loop = std::make_unique<Loop>();
    bool accumulates = step.kind == Step::Kind::Fold || step.kind == Step::Kind::Scan;
    if (accumulates)
      loop->accumulator = slot(frame, step.operands[0]);
    loop->items = elements(slot(frame, step.operands[accumulates ? 1 : 0]));
    open(*step.regions[0], std::move(loop));
    iterate();
  }

  /// Begins the body for the next item, or ends the loop. The top frame is the loop's body.
  void iterate() {
    Frame &body = frames_.back();
    Loop &loop = *body.loop;
    const Frame &parent = frames_[frames_.size() - 2];
    Step::Kind kind = parent.code->steps[parent.at].kind;
    bool accumulates = kind == Step::Kind::Fold || kind == Step::Kind::Scan;
    if (loop.next == loop.items.size()) {
      Value result = kind == Step::Kind::Fold ? std::move(loop.accumulator)
                                              : makeList(std::move(loop.results));
      frames_.pop_back();
      return finish(llvm::MutableArrayRef<Value>(result));
    }
    body.at = 0;
    if (accumulates)
      slot(body, body.code->args[0]) = loop.accumulator;
    slot(body, body.code->args[accumulates ? 1 : 0]) = loop.items[loop.next];
    if (size_t index = accumulates ? 2 : 1; index < body.code->args.size())
      slot(body, body.code->args[index]) = static_cast<int64_t>(loop.next);
    ++loop.next;
  }

  void yield(Frame &frame, const Step &step) {
    auto values = read(frame, step);
    forget(frame, step);
    if (!frame.loop) {
      frames_.pop_back();
      return finish(values);
    }
    Loop &loop = *frame.loop;
    const Frame &parent = frames_[frames_.size() - 2];
    switch (parent.code->steps[parent.at].kind) {
    case Step::Kind::Filter:
      if (toInt(values[0]))
        loop.results.push_back(loop.items[loop.next - 1]);
      break;
    case Step::Kind::Map:
      loop.results.push_back(values[0]);
      break;
    case Step::Kind::Scan:
      loop.results.push_back(values[0]);
      [[fallthrough]];
    default:
      loop.accumulator = values[0];
    }
    iterate();
  }

  const Context &context_;
  const OracleOptions &options_;
  std::deque<Frame> frames_;
  std::deque<Value> slots_;
  std::vector<Value> results_;
  int64_t depth_ = 0;
};

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace

struct Oracle::Impl {
  Functions functions;
  Weights weights;
  ToF32 toF32;
  ToBf16 toBf16;
  ToF64 toF64;
  Precision precision;
  OracleOptions options;
};

Oracle::Oracle(mlir::ModuleOp program, Weights weights, Precision precision, OracleOptions options)
    : impl_(new Impl{Functions(program), std::move(weights), {}, {}, {}, precision, options}) {
  for (auto param : program.getOps<ir::ParamOp>()) {
    auto it = impl_->weights.find(param.getSymName().str());
    if (it == impl_->weights.end() || !it->second)
      throw UserError("no weight is given for parameter '" + param.getSymName().str() + "'");
    auto shape = mlir::cast<mlir::RankedTensorType>(param.getType()).getShape();
    if (shape != llvm::ArrayRef<int64_t>(it->second->shape))
      throw UserError("the weight for parameter '" + param.getSymName().str() + "' has extents " +
                      shapeText(it->second->shape) + ", not " + shapeText(shape));
  }
}

Oracle::~Oracle() = default;

std::vector<Value> Oracle::run(llvm::StringRef name, std::vector<Value> args, int64_t instance) {
  const Function &function = impl_->functions.get(name);
  auto arithmetic = [&]() -> const ops::Arithmetic & {
    switch (impl_->precision) {
    case Precision::F64:
      return impl_->toF64;
    case Precision::F32:
      return impl_->toF32;
    case Precision::Bf16:
      return impl_->toBf16;
    }
    return impl_->toF64;
  };
  Context context{arithmetic(), impl_->precision, impl_->weights, impl_->options.onRead};
  if (ir::takesKey(function.op))
    args.insert(args.begin(),
                static_cast<int64_t>(rt::instanceKey(impl_->options.sampleSeed, 0, instance)));
  if (args.size() != function.body.args.size())
    throw InternalError(name.str() + " takes " + std::to_string(function.body.args.size()) +
                        " arguments, not " + std::to_string(args.size()));
  Interpreter interpreter(context, impl_->options);
  try {
    return interpreter.run(function, std::move(args));
  } catch (const Failure &failure) {
    throw RunError(instance, interpreter.here() + failure.message);
  } catch (const std::bad_alloc &) {
    throw RunError(instance, interpreter.here() + "memory is used up");
  }
}

} // namespace sheaf::oracle
