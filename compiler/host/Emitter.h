//===- Emitter.h - The parts of the host code generator ---------*- C++ -*-===//
//
// Private to compiler/host. `ModuleEmitter` holds what functions share; `FunctionEmitter` turns
// one function into LLVM IR. Its methods are spread over EmitControl (functions, branches, calls),
// EmitForks, EmitRoots, EmitScalars, EmitLists and EmitRecords.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_HOST_EMITTER_H
#define SHEAF_COMPILER_HOST_EMITTER_H

#include "compiler/analysis/Forks.h"
#include "compiler/analysis/Slots.h"
#include "compiler/host/Host.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"

#include <map>
#include <set>

namespace sheaf::host {

/// Slots of an rt::RootFrame before what it holds.
constexpr int64_t kRootHeaderSlots = sizeof(rt::RootFrame) / sizeof(rt::Slot);

/// The values of one Program value, one for each slot of its type: i64 for ints, tokens, tensor
/// handles and extents, double for floats, i1 for bools, ptr for lists and data.
using Slots = llvm::SmallVector<llvm::Value *, 2>;

/// The LLVM types of a value's slots.
llvm::SmallVector<llvm::Type *, 2> slotTypes(mlir::Type type, llvm::LLVMContext &context);
llvm::SmallVector<llvm::Type *> slotTypes(mlir::TypeRange types, llvm::LLVMContext &context);
using passes::slotCount;

/// Which arguments of a call are results of forks, which may not be there yet when it is forked
/// itself. Its thunk takes the other arguments, and after these two slots for each fork: what
/// sheaf_join takes, and the address of the results.
struct Awaited {
  struct Argument {
    unsigned fork;   ///< which
    int64_t slot;    ///< of its results
    mlir::Type type; ///< as it stands there
    bool operator==(const Argument &) const = default;
  };
  unsigned forks = 0;
  llvm::SmallVector<std::optional<Argument>> arguments;
  bool operator==(const Awaited &) const = default;
};

/// A Program function as LLVM sees it.
struct Function {
  llvm::Function *code = nullptr;
  mlir::func::FuncOp source;
  bool recursive = false;
  bool mayWait = false; ///< for a tensor, itself or a function that it calls
  /// More result slots than registers carry: they are written through a pointer that comes before
  /// the other arguments. Else the function returns nothing, an i64, or a pair of them.
  bool resultsInMemory = false;
  /// The function with C linkage, arguments and results in memory (rt::EntryFn); made when needed.
  llvm::Function *thunk = nullptr;
  /// Those that wait for arguments first.
  llvm::SmallVector<std::pair<Awaited, llvm::Function *>, 0> waitingThunks;
};

class ModuleEmitter {
public:
  ModuleEmitter(const HostInput &input, llvm::Module &module);
  HostCode run();

  const HostInput &input;
  llvm::Module &module;
  llvm::LLVMContext &context;
  /// Whether the program grows lists, so that one may be in several pieces (sheaf_list_flat).
  bool chainedLists = false;
  /// Whether the program reads tensors.
  bool reads = false;

  const Function &function(llvm::StringRef name) const { return functions_.find(name)->second; }
  /// The rt::EntryFn that calls a function. That of the entry takes its key from the context, where
  /// a fork of the same function is given one.
  llvm::Function *thunk(llvm::StringRef name, bool isEntry = false);
  /// The same for a fork that waits for arguments.
  llvm::Function *thunk(llvm::StringRef name, const Awaited &awaited);
  /// A function like this one that calls it where its stack has room (sheaf_go_on).
  llvm::Function *goOn(const Function &function);
  /// A function of the runtime (runtime/model/abi.h).
  llvm::FunctionCallee runtime(llvm::StringRef name, llvm::Type *result,
                               llvm::ArrayRef<llvm::Type *> args);
  /// The number of a message; `text` may hold {0} and {1}.
  unsigned message(mlir::Location where, const llvm::Twine &text);
  /// Number of a place where host code reads a tensor, which it may wait for.
  unsigned readPlace(mlir::Location where);
  /// Number of a place that has these roots.
  unsigned rootPlace(std::vector<Root> roots);
  const kernels::Kernel &kernel(unsigned instance) const;
  /// Which arguments of a block are ints that its operators take as extents.
  const std::set<unsigned> &extentArguments(ir::BlockOp block);
  uint32_t paramId(llvm::StringRef name) const { return paramIds_.lookup(name); }
  /// A constant data value: a constructor without fields.
  llvm::Constant *emptyConstructor(int64_t ctor);

private:
  void declareFunctions();

  llvm::StringMap<Function> functions_;
  llvm::StringMap<uint32_t> paramIds_;
  llvm::StringMap<const kernels::Kernel *> kernels_;
  llvm::DenseMap<mlir::Operation *, std::set<unsigned>> extentArguments_;
  llvm::StringMap<unsigned> messageNumbers_;
  std::vector<std::string> messages_, readPlaces_, readPaths_;
  std::vector<int64_t> messageColumns_;
  std::vector<std::vector<Root>> roots_;
  mlir::SymbolTable symbols_;
  llvm::DenseMap<int64_t, llvm::Constant *> emptyConstructors_;
};

using passes::isForked;

/// Converts between a slot in memory (i64) and its register.
llvm::Value *toSlot(llvm::IRBuilderBase &builder, llvm::Value *value);
llvm::Value *fromSlot(llvm::IRBuilderBase &builder, llvm::Value *slot, llvm::Type *type);

class FunctionEmitter {
public:
  FunctionEmitter(ModuleEmitter &module, const Function &function);
  void run();
  /// The function is one that waits for arguments and calls `thunk` then.
  void runWaiting(const Awaited &awaited, llvm::Function *thunk);

private:
  //===--- Values ----------------------------------------------------------===//

  llvm::Value *one(mlir::Value value) { return slots_.find(value)->second.front(); }
  /// The value's slots as a value of type `type`, which may have `?` where the other type has
  /// numbers.
  Slots as(mlir::Value value, mlir::Type type);
  Slots coerce(llvm::ArrayRef<llvm::Value *> slots, mlir::Type from, mlir::Type to);
  void set(mlir::Value value, Slots slots) { slots_[value] = std::move(slots); }
  /// Gives values the slots that stand one after the other in `slots`.
  void setAll(mlir::ValueRange values, llvm::ArrayRef<llvm::Value *> slots);
  /// Loads a value from, or stores its slots to, consecutive slots in memory.
  Slots load(llvm::Value *address, mlir::Type type);
  void store(llvm::Value *address, llvm::ArrayRef<llvm::Value *> slots);
  llvm::Value *slotAt(llvm::Value *base, llvm::Value *index);
  llvm::Value *slotAt(llvm::Value *base, int64_t index) { return slotAt(base, i64(index)); }
  /// Memory in the function's frame.
  llvm::AllocaInst *inFrame(int64_t slots);
  /// Memory in the frame that is the same at every call, and as large as the largest that is asked.
  llvm::AllocaInst *inFrame(llvm::AllocaInst *&memory, int64_t slots);
  /// For what is read back before the next call.
  llvm::Value *temporary(int64_t slots) { return inFrame(temporary_, slots); }

  llvm::ConstantInt *i64(int64_t value) { return b_.getInt64(value); }
  llvm::ConstantInt *i32(uint32_t value) { return b_.getInt32(value); }
  llvm::BasicBlock *newBlock(const char *name);
  /// A member of rt::Context.
  llvm::Value *contextField(size_t offset) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), ctx_, offset);
  }
  /// Goes on only if `good`; else ends the instance with the message.
  void require(llvm::Value *good, mlir::Location where, const llvm::Twine &text,
               llvm::Value *a = nullptr, llvm::Value *b = nullptr);
  void failHere(mlir::Location where, const llvm::Twine &text, llvm::Value *a, llvm::Value *b);
  template <typename... Args>
  llvm::CallInst *callRuntime(llvm::StringRef name, llvm::Type *result, Args... args);

  //===--- Control (EmitControl.cpp) -----------------------------------------===//

  void checkStack();
  /// Counts a call of a recursive function.
  void countStep();
  /// Counts a round of a loop.
  void countRound();
  void countDown(size_t member, llvm::function_ref<llvm::CallInst *()> usedUp);
  void emit(mlir::Operation *op);
  /// Emits a region whose terminator's operands are the function's results.
  void emitTail(mlir::Block &block);
  /// The operation whose results are exactly what the block returns, if it can return them itself.
  mlir::Operation *tailOf(mlir::Block &block);
  void emitTailOp(mlir::Operation *op);
  /// Emits a region; gives its terminator's operands as values of these types.
  Slots emitRegion(mlir::Block &block, mlir::TypeRange types);
  void emitReturn(mlir::OperandRange values);
  void emitCall(mlir::func::CallOp call, bool tail);
  /// The slots of the results; of a tail call none.
  Slots callPlainly(mlir::func::CallOp call, bool tail);
  void emitTailCall(llvm::Function *callee, llvm::ArrayRef<llvm::Value *> args);
  struct Arm {
    mlir::Block *block; ///< null: nothing to do (an `if` without `else`)
    llvm::BasicBlock *entry;
  };
  void emitIf(mlir::scf::IfOp op);
  void emitMatch(ir::MatchOp match);
  llvm::SmallVector<Arm> openIf(mlir::scf::IfOp op);
  llvm::SmallVector<Arm> openMatch(ir::MatchOp match);
  void bindFields(ir::MatchOp match, mlir::Block &arm);
  /// Emits arms that meet again after the operation.
  void joinArms(llvm::ArrayRef<Arm> arms, mlir::Operation *op);

  //===--- Forks (EmitForks.cpp) ----------------------------------------------===//

  /// What was forked: what sheaf_join takes, and where the results will be.
  struct Fork {
    llvm::Value *task;
    llvm::Value *results;
    llvm::AllocaInst *frame = nullptr; ///< its own, that says what is needed of it (openFork)
  };
  /// Where a value is among the results of an operation that was forked and not joined; null if it
  /// is none of these.
  struct Place {
    mlir::Operation *forked = nullptr;
    int64_t slot = 0;
    mlir::Type type = {};
  };
  Place placeOf(mlir::Value value);
  /// Starts a call on the operands' values, in fresh memory. It takes what only it needs of open
  /// forks; `op` is the call, or the branch of which it is an arm.
  Fork startFork(mlir::func::CallOp call, mlir::Operation *op);
  /// The same for a call that takes nothing of others, where it is not worth a fork.
  Fork callInPlace(mlir::func::CallOp call);
  /// Whether one is.
  llvm::Value *asksToFork();
  /// Results that are there, like those of a fork that has run.
  Fork doneFork(llvm::ArrayRef<llvm::Value *> results);
  Fork eitherFork(llvm::ArrayRef<std::pair<Fork, llvm::BasicBlock *>> incoming);
  void emitFork(mlir::func::CallOp call);
  /// The same for branches: what is no call of its own is done at once.
  void emitForkedArms(llvm::ArrayRef<Arm> arms, mlir::Operation *op);
  /// Joins the forks of this block that `op` waits for; before a terminator all of them. After
  /// that comes `next`, or `op`.
  void joinForks(mlir::Operation *op, mlir::Operation *next = nullptr);
  void join(const Fork &fork) { callRuntime("sheaf_join", b_.getVoidTy(), fork.task); }
  /// What a fork that was joined has left.
  void takeResults(mlir::Operation *op, const Fork &fork);
  /// The types of what a forked call or branch leaves.
  mlir::TypeRange forkedTypes(mlir::Operation *op);
  void emitForkedMap(ir::MapOp op, mlir::func::CallOp call);

  //===--- Roots (EmitRoots.cpp) ----------------------------------------------===//

  struct RootSlots {
    Root root;
    Slots slots;
  };
  /// Before a call that may wait: tells the runtime what is needed by what comes after `at`, with
  /// `own` by `at` itself, too. Returns whether there was anything, which dropRoots() asks for.
  bool saveRoots(mlir::Operation *at, bool own);
  /// After that call.
  void dropRoots(bool saved);
  static bool isNeededBy(mlir::OpOperand &use, mlir::Operation *at, bool own);
  /// Adds the parts of a value that may hold tensors.
  void addRoots(llvm::SmallVectorImpl<RootSlots> &roots, mlir::Type type,
                llvm::ArrayRef<llvm::Value *> slots);
  /// What a call takes of a fork, as a tuple: the fork's own frame may not keep more.
  static mlir::Type takenType(llvm::SmallVector<Place> taken, mlir::MLIRContext *context);
  /// Makes an rt::RootFrame the innermost that Context::roots leads to.
  void linkRoots(llvm::Value *frame);
  /// Takes a frame out of the chain, where `inner` leads to it: a frame, or null for
  /// Context::roots.
  void unlinkRoots(llvm::Value *frame, llvm::Value *inner = nullptr);
  /// A fork that was started is open until it is closed: a frame of its own says what is needed of
  /// it, and not each call that may wait meanwhile.
  void openFork(mlir::Operation *op, Fork fork);
  void closeFork(mlir::Operation *op);
  /// What `op` takes of open forks of its block is kept by who got it, or by what is after `op`.
  void forgetTaken(mlir::Operation *op);
  /// In a fork's frame: what is needed of it after `at`.
  void sayNeeded(mlir::Operation *forked, const Fork &fork, mlir::Operation *at);

  //===--- Scalars, tuples and data (EmitScalars.cpp) -------------------------===//

  bool emitArith(mlir::Operation *op);
  bool emitMath(mlir::Operation *op);
  void emitConvert(ir::ConvertOp op);
  void emitDivision(mlir::Operation *op);
  void emitSplitKey(ir::SplitKeyOp op);
  void emitTuple(ir::TupleOp op);
  void emitGet(ir::GetOp op);
  void emitConstruct(ir::ConstructOp op);
  void emitDim(ir::DimOp op);
  void emitRead(ir::ReadOp op);
  void emitEmit(ir::EmitOp op);
  llvm::Value *loadElement(llvm::Value *row, llvm::Value *at, rt::DType dtype);
  llvm::Value *tellRead(llvm::Value *place, llvm::Value *element);

  //===--- Lists (EmitLists.cpp) ----------------------------------------------===//

  bool emitList(mlir::Operation *op);
  llvm::Value *listSize(llvm::Value *list);
  llvm::Value *listElements(llvm::Value *list);
  /// The elements of a list that may be in pieces, one after the other.
  llvm::Value *readElements(mlir::Value list);
  llvm::Value *newList(mlir::Type element, llvm::Value *size);
  /// A loop from 0 to `count` that carries values; `body` gets the index and the carried values
  /// and gives the next ones. Returns what the last round gave.
  Slots loop(llvm::Value *count, Slots carried,
             llvm::function_ref<Slots(llvm::Value *, llvm::ArrayRef<llvm::Value *>)> body);
  /// Gives a body's argument a value of type `type`.
  void bindElement(mlir::BlockArgument argument, llvm::ArrayRef<llvm::Value *> slots,
                   mlir::Type type);
  /// Gives a body that asks for it, by an argument more than others have, the element's number.
  void bindNumber(mlir::Block &body, unsigned argument, llvm::Value *number);
  void emitMake(ir::ListMakeOp op);
  void emitGrow(mlir::Operation *op);
  void emitListGet(ir::ListGetOp op);
  void emitListSlice(ir::ListSliceOp op);
  void emitZip(ir::ZipOp op);
  void emitRange(ir::RangeOp op);
  void emitRows(ir::RowsOp op);
  void emitMap(ir::MapOp op);
  void emitFilter(ir::FilterOp op);
  void emitFold(ir::FoldOp op);
  void emitScan(ir::ScanOp op);

  //===--- Records (EmitRecords.cpp) ------------------------------------------===//

  /// An argument of a record.
  struct Argument {
    mlir::Type type;
    Slots slots;
  };
  Argument tableOf(mlir::Value list, unsigned instance, bool once, mlir::Location where);
  void emitRecord(ir::RecordOp record);
  void emitJoined(ir::JoinedOp op);
  Slots byRows(llvm::function_ref<Slots()> joined, llvm::function_ref<Slots()> apart);
  /// The slots of all results.
  Slots recordNow(ir::RecordOp record);
  llvm::SmallVector<Slots> recordOn(unsigned instance, mlir::ValueRange values, bool once,
                                    mlir::Location where);
  Slots resultsOf(unsigned instance, llvm::ArrayRef<Slots> results, mlir::TypeRange types);
  void emitGhost(ir::GhostOp op);
  void emitApply(ir::ApplyOp apply);
  void emitRow(ir::ApplyOp apply);
  void emitStack(ir::ApplyOp apply);
  void emitAppendRows(ir::ApplyOp apply);
  void emitPart(ir::ApplyOp apply);
  void setRows(ir::ApplyOp apply, llvm::Value *first, llvm::ArrayRef<llvm::Value *> shape);
  /// Records kernel `instance`, with `once` unless they are memoised; gives the slots of each
  /// of its results, of the block's types.
  llvm::SmallVector<Slots> record(unsigned instance, llvm::ArrayRef<Argument> args,
                                  mlir::Location where, bool once = false);
  /// The handle of the results of a record that is looked up first.
  llvm::Value *recordOnce(llvm::Value *kernel, llvm::Value *depth, llvm::Value *granules,
                          llvm::ArrayRef<Argument> args);
  /// Writes the words of arguments; returns how many.
  int64_t writeWords(llvm::Value *words, llvm::ArrayRef<Argument> args);
  static int64_t countWords(llvm::ArrayRef<Argument> args);
  /// The depth of a record of `instance`.
  llvm::Value *maxDepth(unsigned instance, llvm::ArrayRef<Argument> args);
  /// Context::computed.
  llvm::Value *loadComputed();
  llvm::Value *depthOf(llvm::Value *handle) { return b_.CreateLShr(handle, 32); }
  llvm::Value *makeHandle(llvm::Value *id, llvm::Value *depth);
  llvm::Value *evaluate(const Dim &dim, const std::map<std::string, llvm::Value *> &symbols,
                        mlir::Location where);
  llvm::Value *granules(llvm::ArrayRef<llvm::Value *> shape, int64_t elementBytes);
  /// Extents of a tensor value as registers.
  llvm::SmallVector<llvm::Value *> extents(mlir::RankedTensorType type,
                                           llvm::ArrayRef<llvm::Value *> slots);
  /// a * b, or a number that no row space has when that overflows.
  llvm::Value *multiply(llvm::Value *a, llvm::Value *b);

  ModuleEmitter &m_;
  const Function &function_;
  llvm::IRBuilder<> b_;
  llvm::Value *ctx_ = nullptr;
  llvm::Value *resultMemory_ = nullptr;
  llvm::AllocaInst *temporary_ = nullptr;
  llvm::AllocaInst *rootFrame_ = nullptr;
  /// What loops that are being emitted have made so far.
  llvm::SmallVector<RootSlots> partial_;
  std::optional<std::vector<mlir::Value>> rootValues_; ///< that may have to be kept, in order
  llvm::DenseMap<mlir::Value, Slots> slots_;
  /// Open, in order of their start.
  llvm::MapVector<mlir::Operation *, Fork> forks_;
  llvm::SmallVector<llvm::AllocaInst *> forkFrames_; ///< that no open fork has
};

template <typename... Args>
llvm::CallInst *FunctionEmitter::callRuntime(llvm::StringRef name, llvm::Type *result,
                                             Args... args) {
  llvm::SmallVector<llvm::Value *> values{ctx_, args...};
  llvm::SmallVector<llvm::Type *> types;
  for (llvm::Value *value : values)
    types.push_back(value->getType());
  return b_.CreateCall(m_.runtime(name, result, types), values);
}

} // namespace sheaf::host

#endif // SHEAF_COMPILER_HOST_EMITTER_H
