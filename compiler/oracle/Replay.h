//===- Replay.h - Reads as compiled code found them -------------*- C++ -*-===//
//
// Rounding may turn a decision around: an argmax of near-equals, a number that is read and compared
// with another. Whatever follows is then not comparable. So the oracle takes what the compiled run
// of the instance read (rt::ReadLog) in the place of its own numbers, and notes how far these are
// from it. Whether that is near enough is for others to say.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ORACLE_REPLAY_H
#define SHEAF_COMPILER_ORACLE_REPLAY_H

#include "compiler/oracle/Decisions.h"
#include "runtime/walk/read_log.h"

#include "mlir/IR/Location.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <span>
#include <unordered_map>

namespace sheaf::oracle {

class Replay {
public:
  /// By place of the log: ir::pathText of where it is in the program, inlined calls and all. The
  /// program is that one or one that it was made from: a read belongs to the place whose path is
  /// the longest that ends the path of calls to it. At each place reads come in the order of the
  /// program. A read that belongs nowhere, because the compiled program has dropped it, is the
  /// oracle's own, like what is read after the last one of its place.
  /// Decisions within `near` of their boundaries may be turned around together with others
  /// (Decisions::change). Where nothing is read and `hasIntResults` is not set, a run costs nothing
  /// more.
  Replay(const std::vector<std::string> &paths, double near, bool hasIntResults = false);

  /// The next run takes these. Before every run.
  void expect(std::span<const rt::LoggedRead> log);

  /// A number that the run has read.
  struct Read {
    uint32_t place; ///< kResult: an int of the result
    bool isFloat;
    double own, logged; ///< when it was read
    /// By all that has been read. Of a float: by how much the own one is greater, in units of
    /// max(1, |own|). Of an int or bool: how far what it follows from is from deciding so
    /// (ops::Decision), 0 where it does; infinite where that cannot explain it, or two reads
    /// contradict each other.
    double distance;
    bool isComplete = true; ///< false: not all that might explain it could be tried

    // What it was read from, if that may change.
    TensorPtr tensor = {};
    size_t at = 0;
    llvm::SmallVector<uint32_t, 1> turns = {};
  };
  static constexpr uint32_t kResult = UINT32_MAX;

  /// Of the last run, in its order, those that the log has.
  std::span<const Read> reads() const { return reads_; }
  /// What reads may be off.
  double near() const { return near_; }
  /// Decisions that were taken otherwise than by the oracle's own numbers: ints and bools, and
  /// comparisons and conversions of floats by host code.
  int64_t turned() const { return turned_; }
  /// A read of the log that the run did not come to.
  std::optional<rt::LoggedRead> leftOver() const;

  /// Takes ints and bools in the tensors of a result as compiled code found them, like reads.
  void compareResult(const Value &expected, const Value &actual);

  // From the interpreter.

  /// False when it wants to know nothing of the run.
  bool begin(const Context &context);
  /// How many calls it must know on the way to a read.
  size_t pathLength() const { return pathLength_; }
  /// What a read with these operands gives that stands in the function which the first of these
  /// calls called, and so on.
  Value read(mlir::Operation *op, llvm::ArrayRef<mlir::Location> calls,
             llvm::ArrayRef<Value> operands);
  /// Before an operation looks at tensors.
  void prepare(const Step &step, llvm::ArrayRef<Value> operands);
  /// Every operation that computes something.
  void note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results);
  /// After the run, when all is known that was read: the reads' distances.
  void settle();

private:
  struct Place {
    std::vector<rt::Slot> log;
    size_t next = 0;
  };

  std::optional<uint32_t> placeOf(mlir::Operation *op, llvm::ArrayRef<mlir::Location> calls) const;
  Value readElement(std::optional<uint32_t> number, const TensorPtr &tensor, size_t at,
                    mlir::Type type);
  void compare(uint32_t place, const TensorPtr &tensor, size_t at, double logged);
  void change(Read &read);
  void noteHost(const Step &step, llvm::ArrayRef<Value> operands, const Values &results);
  std::optional<double> ownOf(double logged) const;
  void noteOwn(double logged, double own);

  llvm::StringMap<uint32_t> numbers_; ///< by path
  size_t pathLength_ = 0;
  std::vector<Place> places_;
  std::vector<Read> reads_;
  int64_t turned_ = 0;
  double near_;
  bool hasIntResults_;
  std::optional<Context> context_;
  Decisions decisions_;
  /// What host floats that follow from reads would be by the oracle's own numbers, of the latest
  /// ones. By their bits, so one that is equal to another is taken for that as well; it only
  /// matters to turned().
  std::unordered_map<uint64_t, double> own_, ownBefore_;
};

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_REPLAY_H
