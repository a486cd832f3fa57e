//===- Interpreter.cpp - Runs one function --------------------------------===//

#include "compiler/oracle/Interpreter.h"

#include "compiler/ir/Program.h"
#include "compiler/oracle/Replay.h"
#include "compiler/oracle/Tape.h"
#include "runtime/model/keys.h"

#include <new>

namespace sheaf::oracle {
namespace {

/// `file.sheaf:12:3: `, when the place is known.
std::string place(mlir::Location location) {
  if (auto at = location->findInstanceOf<mlir::FileLineColLoc>())
    return at.getFilename().str() + ":" + std::to_string(at.getLine()) + ":" +
           std::to_string(at.getColumn()) + ": ";
  return {};
}

} // namespace

std::vector<Value> Interpreter::run(const Function &function, llvm::MutableArrayRef<Value> args) {
  enter(function, args);
  while (!frames_.empty())
    step();
  return std::move(results_);
}

std::string Interpreter::here() const {
  if (frames_.empty())
    return {};
  const Frame &frame = frames_.back();
  return place(frame.code->steps[frame.at].op->getLoc());
}

llvm::SmallVector<Value, 4> Interpreter::read(const Frame &frame, const Step &step) {
  llvm::SmallVector<Value, 4> values;
  for (uint32_t operand : step.operands)
    values.push_back(slot(frame, operand));
  return values;
}

void Interpreter::forget(const Frame &frame, const Step &step) {
  for (uint32_t dead : step.deaths)
    slot(frame, dead) = Value();
}

void Interpreter::enter(const Function &function, llvm::MutableArrayRef<Value> args) {
  if (++depth_ > maxDepth_)
    throw Failure{"the recursion is deeper than " + std::to_string(maxDepth_) + " calls",
                  RunError::Cause::Limit};
  if (++entered_ >= maxCalls_)
    throw Failure{"no end in sight: " + std::to_string(maxCalls_) + " calls were made",
                  RunError::Cause::Limit};
  Frame frame{&function.body, 0, slots_.size(), nullptr};
  slots_.resize(slots_.size() + function.slots);
  for (auto [index, arg] : llvm::zip(function.body.args, args))
    slot(frame, index) = std::move(arg);
  frames_.push_back(std::move(frame));
}

/// Ends the current step with these results and goes on with the next one.
template <typename Results> void Interpreter::finish(Results &&results) {
  Frame &frame = frames_.back();
  const Step &step = frame.code->steps[frame.at];
  for (auto [index, value] : llvm::zip(step.results, results))
    slot(frame, index) = std::move(value);
  forget(frame, step);
  ++frame.at;
}

void Interpreter::open(const Code &code, std::unique_ptr<Loop> loop) {
  frames_.push_back({&code, 0, frames_.back().base, std::move(loop)});
}

void Interpreter::step() {
  Frame &frame = frames_.back();
  const Step &step = frame.code->steps[frame.at];
  switch (step.kind) {
  case Step::Kind::Compute:
  case Step::Kind::Apply:
    return compute(frame, step);
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

Values Interpreter::computeStep(const Step &step, llvm::ArrayRef<Value> operands) {
  if (step.kind == Step::Kind::Apply)
    return applyOperator(step, operands, context_);
  if (mlir::isa<ir::EmitOp>(step.op)) {
    emitted_.push_back(operands[0]);
    return {};
  }
  if (replay_ && mlir::isa<ir::ReadOp>(step.op)) {
    llvm::ArrayRef<mlir::Location> calls;
    if (!calls_.empty())
      calls = calls_.back();
    return {replay_->read(step.op, calls, operands)};
  }
  return oracle::compute(step, operands, context_);
}

void Interpreter::compute(const Frame &frame, const Step &step) {
  auto operands = read(frame, step);
  if (replay_)
    replay_->prepare(step, operands);
  Values results = computeStep(step, operands);
  bool isHeld = holdStopped(step, results);
  if (tape_)
    tape_->note(step, operands, results);
  if (replay_ && !isHeld)
    replay_->note(step, operands, results);
  finish(results);
}

/// Whether the result follows from nothing, because another is taken for it.
bool Interpreter::holdStopped(const Step &step, Values &results) {
  const auto &held = context_.options.onStopGradient;
  if (!held || step.kind != Step::Kind::Apply || !step.record->stopsGradient)
    return false;
  TensorPtr own = std::get<TensorPtr>(results[0]), taken = held(own);
  results[0] = taken;
  return taken != own;
}

/// Of a call in tail position the caller is no longer open afterwards, but it is on the way.
void Interpreter::noteCall(const Step &step) {
  llvm::SmallVector<mlir::Location, 2> calls;
  if (replay_->pathLength() > 0)
    calls.push_back(step.op->getLoc());
  if (!calls_.empty())
    for (mlir::Location call : calls_.back())
      if (calls.size() < replay_->pathLength())
        calls.push_back(call);
  if (step.isTail && !calls_.empty())
    calls_.pop_back();
  calls_.push_back(std::move(calls));
}

void Interpreter::call(Frame &frame, const Step &step) {
  auto args = read(frame, step);
  const Function &callee = *step.callee;
  if (replay_)
    noteCall(step);
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

void Interpreter::leave(Frame &frame, const Step &step) {
  auto values = read(frame, step);
  slots_.resize(frame.base);
  frames_.pop_back();
  --depth_;
  if (!calls_.empty())
    calls_.pop_back();
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

void Interpreter::branch(const Step &step, size_t region) {
  if (const Code *code = step.regions[region].get())
    return open(*code);
  finish(Values());
}

void Interpreter::match(Frame &frame, const Step &step) {
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

void Interpreter::beginLoop(Frame &frame, const Step &step) {
  auto loop = std::make_unique<Loop>();
  bool accumulates = step.kind == Step::Kind::Fold || step.kind == Step::Kind::Scan;
  if (accumulates)
    loop->accumulator = slot(frame, step.operands[0]);
  loop->items = elements(slot(frame, step.operands[accumulates ? 1 : 0]));
  open(*step.regions[0], std::move(loop));
  iterate();
}

/// Begins the body for the next item, or ends the loop. The top frame is the loop's body.
void Interpreter::iterate() {
  Frame &body = frames_.back();
  Loop &loop = *body.loop;
  const Frame &parent = frames_[frames_.size() - 2];
  Step::Kind kind = parent.code->steps[parent.at].kind;
  bool accumulates = kind == Step::Kind::Fold || kind == Step::Kind::Scan;
  if (loop.next == loop.items.size()) {
    Value result =
        kind == Step::Kind::Fold ? std::move(loop.accumulator) : makeList(std::move(loop.results));
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

void Interpreter::yield(Frame &frame, const Step &step) {
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

std::vector<Value> runInstance(const Function &function, std::vector<Value> args,
                               const Context &context, const OracleOptions &options, Draw draw,
                               Tape *tape) {
  if (ir::takesKey(function.op))
    args.insert(args.begin(), static_cast<int64_t>(
                                  rt::instanceKey(options.sampleSeed, draw.step, draw.instance)));
  if (args.size() != function.body.args.size())
    throw InternalError(mlir::func::FuncOp(function.op).getSymName().str() + " takes " +
                        std::to_string(function.body.args.size()) + " arguments, not " +
                        std::to_string(args.size()));
  Replay *replay = options.replay && options.replay->begin(context) ? options.replay : nullptr;
  Interpreter interpreter(context, options.maxDepth, options.maxCalls, tape, replay);
  try {
    std::vector<Value> results = interpreter.run(function, args);
    if (ir::emittedType(function.op))
      results.push_back(interpreter.emitted());
    if (replay)
      replay->settle();
    return results;
  } catch (const Failure &failure) {
    if (replay)
      replay->settle();
    throw RunError(draw.instance, interpreter.here() + failure.message, failure.cause);
  } catch (const std::bad_alloc &) {
    throw RunError(draw.instance, interpreter.here() + "memory is used up", RunError::Cause::Limit);
  }
}

} // namespace sheaf::oracle
