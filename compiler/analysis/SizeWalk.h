//===- SizeWalk.h - Walking a program with bounds ---------------*- C++ -*-===//
//
// Internal to the analysis of MemoryBound.h. SizeWalk.cpp has operations, SizeLoops.cpp loops over
// lists, SizeCalls.cpp calls of functions that call themselves, SizeVisits.cpp those that are
// looked at call by call or node by node, SizeCounters.cpp what such calls count.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_ANALYSIS_SIZEWALK_H
#define SHEAF_COMPILER_ANALYSIS_SIZEWALK_H

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/LiveTensors.h"
#include "compiler/analysis/MemoryBound.h"
#include "runtime/model/layout.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"

#include <set>

namespace mlir::arith {
class CmpIOp;
class SelectOp;
} // namespace mlir::arith

namespace sheaf::passes {

constexpr double kGranuleBytes = rt::kGranuleBytes;
constexpr double kSlotBytes = sizeof(rt::Slot);
constexpr double kListBytes = 72; ///< an rt::ListObject, and what its elements lie in

/// Bytes of the slots that a value of a type takes.
Bound slotBytes(mlir::Type type);
/// Bytes of a list of that type with so many elements.
Bound listBytes(mlir::Type list, const Bound &length);
/// Bytes of a row of so many bytes, with padding.
Bound rowBytes(const Bound &bytes);

/// In the way to an element of a list: begins the number of the loop whose turn has that element.
/// Of any element, which several may be, it has none.
constexpr char kTurn = '#';

/// Lists with more elements are not looked at element by element.
constexpr size_t kMostElements = 64;

/// What may count in a parameter of a function.
struct Counter;

class SizeWalk {
public:
  using Values = std::vector<SizeValue>;
  /// Sizes grow from call to call, and not by as much at each.
  struct NotLinear {};

  SizeWalk(mlir::ModuleOp module, const RecordingKernels &kernels, SizeSymbols &symbols);

  /// What a function gives for these arguments. What it takes is added to use().
  Values run(mlir::func::FuncOp func, const Values &args);
  MemoryUseBound &use() { return *use_; }
  /// The same of the entry: its arguments are there already.
  Values runEntry(mlir::func::FuncOp func, const Values &args);
  /// How many tensors a value holds that the program has made.
  Bound tensorsIn(const SizeValue &value, mlir::Type type);

private:
  using Env = llvm::DenseMap<mlir::Value, SizeValue>;

  /// A way to bound a recursion came to nothing.
  struct GivenUp {};

  // Operations.
  Values walk(mlir::Block &block);
  void walk(mlir::Operation *op);
  SizeValue &of(mlir::Value value) { return env_->find(value)->second; }
  Values of(mlir::ValueRange values);
  void set(mlir::Value value, SizeValue size);
  void setUnknown(mlir::Operation *op, const std::string &what);
  SizeValue unknown(mlir::Type type, mlir::Location where, const std::string &what) {
    return unknownValue(type, module_, symbols_, where, what);
  }
  bool visitArithmetic(mlir::Operation *op);
  bool visitValues(mlir::Operation *op);
  bool visitLists(mlir::Operation *op);
  SizeValue compare(mlir::Operation *op);
  SizeNumber smaller(const SizeNumber &a, const SizeNumber &b) const;
  void visitBranches(mlir::Operation *op, llvm::ArrayRef<mlir::Block *> ways);
  void visitMatch(ir::MatchOp match);
  void visitApply(ir::ApplyOp apply);

  // Lists (SizeLists.cpp).
  void grow(mlir::Operation *op, const SizeValue &list, const SizeValue &added, bool front);
  void madeList(mlir::Type list, const Bound &length);
  void appended(mlir::Operation *op, const Bound &length);
  int later() const;
  /// Whether a list is joined where it is used, or where what is that list is.
  bool readsElements(mlir::OpOperand &use);
  /// The blocks before which a list has to be joined: that which makes it, and branches.
  const llvm::SmallPtrSet<mlir::Block *, 2> &findJoins(mlir::Value list);
  void countJoin(mlir::Value list, SizeValue &value);
  /// What it takes to join all lists in a value, where that has not been counted. Each is joined
  /// once.
  Bound joinBytes(const SizeValue &value, mlir::Type type);

  // Records.
  void record(unsigned kernel, mlir::ValueRange args, mlir::Operation *op, const Bound &count,
              bool onlyScratch = false);
  Bound tensorBytes(const RecordMemory::Tensor &tensor, mlir::ArrayRef<SizeValue> args,
                    mlir::Operation *op);
  void heap(const Bound &bytes) { use_->heapBytes += bytes; }
  /// What something takes, which is not added to anything.
  template <typename Run> MemoryUseBound usedBy(Run run) {
    MemoryUseBound own;
    llvm::SaveAndRestore taking(use_, &own);
    run();
    return own;
  }
  /// Where something grows in place from turn to turn of what is looked at: what all turns take.
  MemoryUseBound::AllTurns *allTurnsFor(mlir::Operation *op);
  /// Adds what all turns of a loop take, which `use` is one of: `largest` of any turn.
  void endTurns(mlir::Operation *loop, MemoryUseBound &use,
                llvm::function_ref<Bound(const Bound &)> largest);

  // Tensors that are needed (LiveTensors.cpp).
  const LiveTensors &liveIn(mlir::Block &block);
  Bound tensorsAt(const LiveTensors &live, size_t at);
  bool holdsTensors(mlir::Type type);

  // Loops (SizeLoops.cpp).
  void visitMap(ir::MapOp map);
  void visitFilter(ir::FilterOp filter);
  void visitFold(mlir::Operation *loop);
  /// The element of a list in symbols that no one else has, and what these come to.
  std::pair<SizeValue, SizeSums> freshElement(const SizeValue &list);
  /// The body of a loop that is not written out.
  SizeValue runBody(mlir::Block &body, Values args, const Bound &count, const SizeSums &sums,
                    bool counts);
  SizeValue invariantOf(mlir::Operation *loop, const SizeValue &init, const SizeValue &element,
                        const SizeValue &number, const Bound &count, const SizeSums &sums,
                        std::map<unsigned, Bound> &growth);
  std::optional<SizeValue> grownEvenly(mlir::Operation *loop, const SizeValue &carried,
                                       SizeValue more, const SizeValue &init,
                                       const SizeValue &element, const SizeValue &number,
                                       const Bound &count, const SizeSums &sums, bool together,
                                       std::map<unsigned, Bound> &growth);

  /// While a body runs for one element after the other: what of a data value each of them has.
  void beginElements(const SizeValue &element);
  void endElements();
  /// Only of what belongs to the element it is known where it is.
  static SizeValue keepWays(SizeValue made, const SizeValue &element);

  // Calls (SizeCalls.cpp, SizeVisits.cpp).
  struct Visit;
  /// Whether a call is one of those that are looked at.
  bool isInVisit(mlir::func::FuncOp func);
  Values call(mlir::func::FuncOp func, Values args, mlir::Operation *op);
  Values summarise(mlir::func::FuncOp func, const Values &args, mlir::Operation *op);
  Values unroll(mlir::func::FuncOp func, const Values &args);
  /// Each node of an argument once.
  Values visitNodes(mlir::func::FuncOp func, const Values &args, unsigned parameter);
  /// A list, and what is left of it after its first elements, down to the empty one.
  Values visitTails(mlir::func::FuncOp func, const Values &args, unsigned parameter);
  /// At most so many calls; with `once` each makes one other at most.
  Values visitCalls(mlir::func::FuncOp func, const Values &args, const Bound &calls, bool once);
  /// How many calls a function makes that counts an int up to a limit; `ofLists`: or the length of
  /// a list down to nothing.
  std::optional<Bound> countedCalls(mlir::func::FuncOp func, const Values &args, bool ofLists);
  /// Whether a branch is taken once at most, since it is where a recursion that is looked at ends:
  /// `way` of an operation of its body.
  bool endsVisit(mlir::Operation *op, mlir::Block &way);
  void countAtEnd(const MemoryUseBound &use);
  /// Calls in a function of itself, and of others that it calls itself through.
  llvm::SmallVector<mlir::func::CallOp> callsOfCycle(mlir::func::FuncOp func);
  /// Whether it calls itself through no other.
  bool callsItselfAlone(mlir::func::FuncOp func);

  // What a recursion counts (SizeCounters.cpp).
  struct Counted;
  void countedBy(const Counter &counter, bool up, const SizeNumber &limit, bool meets,
                 int64_t beyond, mlir::func::CallOp call, llvm::ArrayRef<mlir::func::CallOp> calls,
                 const Values &args, std::vector<Counted> &counted);
  void countedBy(std::pair<mlir::arith::CmpIOp, bool> fact, mlir::func::CallOp call,
                 llvm::ArrayRef<mlir::func::CallOp> calls, const Values &args,
                 std::vector<Counted> &counted);
  std::optional<std::pair<int64_t, int64_t>> stepOf(mlir::func::FuncOp func,
                                                    mlir::func::CallOp call,
                                                    llvm::ArrayRef<mlir::func::CallOp> calls,
                                                    const Counter &counter, const Values &args);
  std::optional<SizeNumber> limitOf(mlir::Value value, mlir::func::FuncOp func,
                                    llvm::ArrayRef<mlir::func::CallOp> calls, const Values &args);
  std::optional<SizeNumber>
  computed(mlir::Value value, llvm::function_ref<std::optional<SizeNumber>(mlir::Value)> leaf,
           llvm::ArrayRef<std::pair<mlir::arith::CmpIOp, bool>> facts);
  Values callInVisit(mlir::func::FuncOp func, const Values &args);
  Values runInVisit(mlir::func::FuncOp func, MemoryUseBound &use);
  Values finish(const Visit &visit, mlir::func::FuncOp func);
  Values settle(Visit &visit, mlir::func::FuncOp func);
  /// Sizes that calls have given since a body began, one for each of its elements: together they
  /// are no more than those of all calls.
  size_t callResults() const;
  void addCallResults(SizeSums &sums, size_t begin);
  void take(const std::string &way);
  template <typename Run> std::optional<Values> attempt(Run run);
  SizeValue nodeFields(const SizeValue &tree, const NodeKind &kind);
  std::set<std::string> *taken();
  mlir::func::FuncOp calleeOf(mlir::func::CallOp call) {
    return symbolTable_.lookup<mlir::func::FuncOp>(call.getCallee());
  }

  mlir::ModuleOp module_;
  mlir::SymbolTable symbolTable_;
  CallGraph graph_;
  std::map<mlir::Block *, LiveTensors> live_;
  llvm::DenseMap<mlir::Type, bool> holdsTensors_;
  mlir::Block *inputs_ = nullptr; ///< its arguments are the entry's
  const RecordingKernels &kernels_;
  SizeSymbols &symbols_;
  Env *env_ = nullptr;
  MemoryUseBound *use_;
  MemoryUseBound whole_;
  bool mayChain_; ///< lists may be in pieces, which are joined where they are read
  llvm::DenseMap<mlir::Value, std::unique_ptr<llvm::SmallPtrSet<mlir::Block *, 2>>> joinsOf_;
  llvm::DenseMap<mlir::Block *, llvm::SmallSetVector<mlir::Value, 2>> joins_; ///< by these blocks
  /// Loops and functions that call themselves of which a turn is looked at.
  std::vector<mlir::Operation *> turning_;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> growsInTurnsOf_; ///< by what appends
  /// The recursion whose body is looked at, and the one around it.
  Visit *visit_ = nullptr;

  /// Calls that are written out: those that have been, and those that are open.
  struct Known {
    mlir::Operation *func;
    Values args, results;
    MemoryUseBound use;
    MemoryUseBound::Turns turns;
  };
  std::vector<Known> known_;
  llvm::DenseMap<mlir::Operation *, std::vector<Known>> summaries_; ///< of calls from outside
  struct Open {
    mlir::func::FuncOp func;
    const Values *args;
    MemoryUseBound::Turns turns{}; ///< of calls in it
  };
  std::vector<Open> open_;
  unsigned unrolled_ = 0;
  uint64_t unrolledSince_ = 0;                         ///< Bound::work
  llvm::DenseMap<mlir::Operation *, unsigned> inVain_; ///< by function
  unsigned loops_ = 0;                                 ///< that were looked at
  unsigned visits_ = 0;                                ///< bodies of functions, in SizeVisits.cpp
};

/// Whether it gives the smaller of two ints.
bool isSmaller(mlir::arith::SelectOp select);
/// `into` becomes at least both.
void larger(MemoryUseBound &into, const MemoryUseBound &other);
void larger(MemoryUseBound::Turns &into, const MemoryUseBound::Turns &other);
/// Adds what comes after it, for each element of `count`.
void addSum(MemoryUseBound &into, const MemoryUseBound &each, const Bound &count,
            const SizeSums &sums, const SizeSymbols &symbols);
MemoryUseBound mapBounds(const MemoryUseBound &use, const std::function<Bound(const Bound &)> &map);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_SIZEWALK_H
