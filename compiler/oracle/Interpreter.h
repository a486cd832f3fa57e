//===- Interpreter.h - Runs one function ------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_INTERPRETER_H
#define SHEAF_COMPILER_ORACLE_INTERPRETER_H

#include "compiler/oracle/Compute.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace sheaf::oracle {

class Replay;
class Tape;

/// One run at a time. The stack of open blocks and the slots of open calls are data: recursion of
/// the program takes no machine stack.
class Interpreter {
public:
  /// `maxDepth`, `maxCalls`: as in OracleOptions. `tape` and `replay`, if there are such, are told
  /// of every operator.
  Interpreter(const Context &context, int64_t maxDepth, int64_t maxCalls, Tape *tape = nullptr,
              Replay *replay = nullptr)
      : context_(context), maxDepth_(maxDepth), maxCalls_(maxCalls), tape_(tape), replay_(replay) {}

  /// Throws Failure, and InternalError for operations that are no part of a Program; there is no
  /// other run after that.
  std::vector<Value> run(const Function &function, llvm::MutableArrayRef<Value> args);
  /// The list of what the run emitted.
  Value emitted() { return makeList(std::move(emitted_)); }

  /// Where the run is, for messages: `file.sheaf:12:3: `, or nothing.
  std::string here() const;

private:
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

  Value &slot(const Frame &frame, uint32_t index) { return slots_[frame.base + index]; }
  llvm::SmallVector<Value, 4> read(const Frame &frame, const Step &step);
  void forget(const Frame &frame, const Step &step);
  void enter(const Function &function, llvm::MutableArrayRef<Value> args);
  void noteCall(const Step &step);
  Values computeStep(const Step &step, llvm::ArrayRef<Value> operands);
  bool holdStopped(const Step &step, Values &results);
  template <typename Results> void finish(Results &&results);
  void open(const Code &code, std::unique_ptr<Loop> loop = nullptr);
  void step();
  void compute(const Frame &frame, const Step &step);
  void call(Frame &frame, const Step &step);
  void leave(Frame &frame, const Step &step);
  void branch(const Step &step, size_t region);
  void match(Frame &frame, const Step &step);
  void beginLoop(Frame &frame, const Step &step);
  void iterate();
  void yield(Frame &frame, const Step &step);

  const Context &context_;
  int64_t maxDepth_, maxCalls_;
  Tape *tape_;
  Replay *replay_;
  std::deque<Frame> frames_;
  /// With a replay: of each open call but the first where it was called, and the caller, as far
  /// as a replay must know.
  std::deque<llvm::SmallVector<mlir::Location, 2>> calls_;
  std::deque<Value> slots_;
  std::vector<Value> results_, emitted_;
  int64_t depth_ = 0, entered_ = 0;
};

/// Which draws an instance takes.
struct Draw {
  int64_t instance = 0;
  uint64_t step = 0;
};

/// Calls a function of a program as Oracle::run does.
std::vector<Value> runInstance(const Function &function, std::vector<Value> args,
                               const Context &context, const OracleOptions &options, Draw draw,
                               Tape *tape);

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_INTERPRETER_H
