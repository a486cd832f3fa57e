//===- CodeMotion.h - Light tensor code into the blocks beside it -*- C++ -*-===//
//
// What the parts of the pass code-motion share. Each part looks at the groups of a region block
// (Grouping.h), of which each would become a block and a record of its own, and moves groups that
// are light to where they are part of another one.
//
// It goes in rounds: all that a round asks was true when it began, for what it changes is not
// touched again before the next.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_PASSES_CODEMOTION_H
#define SHEAF_COMPILER_PASSES_CODEMOTION_H

#include "compiler/analysis/Ancestry.h"
#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/Grouping.h"
#include "compiler/analysis/OperatorWork.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace sheaf::passes {

class CodeMotion {
public:
  CodeMotion(mlir::ModuleOp module, PassContext &context);
  ~CodeMotion() { beginRound(); }

  mlir::LogicalResult run();

private:
  /// What moves: the operators of a group, and the constants among their operands that stand in the
  /// same region block.
  struct Moved {
    Group group;
    llvm::SmallVector<mlir::Operation *> constants;
    /// What it takes and what stands too late for its new place, in order: to be brought there.
    llvm::SmallVector<mlir::Operation *> before;
    bool contains(mlir::Operation *op) const { return llvm::is_contained(group, op); }
    /// Of these results those that others use, too.
    llvm::SmallVector<mlir::OpResult> usedByOthers(mlir::ResultRange results) const;
  };

  /// What is known of the module as it is when a round begins.
  struct Snapshot {
    explicit Snapshot(mlir::ModuleOp module) : groups(module), ancestry(module, groups) {}
    Groups groups;
    Ancestry ancestry;
    llvm::StringMap<llvm::SmallVector<const Group *>>
        kernels; ///< groups that are one, by what they are
    bool hasKernels = false;
    llvm::DenseSet<mlir::Region *> recursions; ///< those with calls of recursive functions
    /// What heads of this round take beside their hosts' results, and the host.
    llvm::DenseMap<std::pair<mlir::Value, mlir::Block *>, const Group *> takenFor;
  };

  /// One round of a part: whether anything moved.
  bool sinkTails(), sinkLoopTails(), hoistHeads();
  template <typename Visit> bool forEachBlock(Visit &&visit);
  void beginRound();

  // BranchTails.cpp: light code after a branch, to the end of each arm.
  struct Arm {
    mlir::Block *block;
    mlir::IRMapping results; ///< of the branch, to what the arm gives
    const Group *host;       ///< what the tail becomes part of; null: a record of its own
  };
  bool sinkTail(const Group &group, mlir::Block &block);
  bool findArms(const Moved &tail, mlir::Operation *branch, llvm::SmallVector<Arm> &arms);
  void sinkTail(const Moved &tail, mlir::Operation *branch);

  // LoopTails.cpp: light code after a fold, to the end of its body.
  bool sinkLoopTail(const Group &group, mlir::Block &block);
  bool sinkLoopTail(const Moved &tail, ir::FoldOp fold);
  double workOfElement(ir::FoldOp fold);

  // BranchHeads.cpp: light code at the beginning of an arm, before the branch.
  struct Head {
    Moved moved;
    unsigned arm;
    mlir::Operation *branch; ///< the outermost that it leaves
    const Group *host;       ///< what it becomes part of
  };
  bool hoistHeads(mlir::Operation *branch);
  std::optional<Head> findHead(const Group &group, mlir::Region &arm, unsigned number);
  bool pays(llvm::ArrayRef<const Head *> heads, mlir::Operation *branch);
  /// Why heads of one host stay; null when they need not.
  const char *whyHeadsStay(llvm::ArrayRef<const Head *> heads, mlir::Operation *branch);
  bool joinsHosts(llvm::ArrayRef<const Head *> heads, bool note);
  bool shiftsLevels(llvm::ArrayRef<const Head *> heads, mlir::Operation *branch);
  void hoist(const Head &head);
  void findRecursions();
  bool endsRecursion(mlir::Region &arm) const;

  /// The operators of a group that may run where they are not needed: light, on tensors of known
  /// extents, and nothing in them can go wrong.
  static bool mayMove(const Group &group);
  /// The operations of `block` that make operands of the group, itself and constants apart. Fills
  /// `moved`.
  static llvm::SmallVector<mlir::Operation *> makersOf(const Group &group, mlir::Block &block,
                                                       Moved &moved);
  /// Whether what moves may become results of `place`, an operation of the block that it stands in:
  /// all who take it stand after that, and `makers`, of all that it takes, stand before it or can.
  /// Fills moved.before.
  static bool mayBecomeResults(Moved &moved, llvm::ArrayRef<mlir::Operation *> makers,
                               mlir::Operation *place);
  /// Null when the operators, with their operands mapped, would in `block` be part of `host` and of
  /// nothing else, and `host` would be no longer than a block should and take nothing but what it
  /// is made of already: then it waits no longer, and its records are memoised as often. Else
  /// why not.
  const char *obstacle(llvm::ArrayRef<mlir::Operation *> ops, const mlir::IRMapping &map,
                       mlir::Block &block, const Group &host);
  /// Whether the block would have other groups than now, but for `gone` of them, if these
  /// operations of it recorded nothing: levels after them begin earlier.
  bool shiftsLevels(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> quiet, unsigned gone);
  /// Whether tensor code of the block on this level reads the value, `host` apart: that and
  /// whoever reads it there, too, would be one group.
  bool isReadBesides(mlir::Value value, mlir::Block &block, unsigned level, const Group *host);
  /// Whether the kernel of a group probably runs outside of `root`, too: an equal group stands
  /// there, or the weight of a product is a factor there.
  bool runsOutside(const Group &group, mlir::Operation *root);
  bool hasEqual(const Group &group, mlir::Operation *root);
  /// What operators of the group compute that was in the program before anything moved into it, and
  /// what others do, in vain at worst.
  double ownWork(const Group &group), vainWork(const Group &group);
  double workOf(llvm::ArrayRef<mlir::Operation *> ops);
  /// `operators` more in the program; false when that is too many.
  bool takeRoom(int64_t operators);
  /// Whether what stands in the block may run again and again in one instance.
  bool isRepeated(mlir::Block &block) const;

  bool isTouched(llvm::ArrayRef<mlir::Operation *> ops) const {
    return llvm::any_of(ops, [&](mlir::Operation *op) { return touched_.contains(op); });
  }
  void touch(llvm::ArrayRef<mlir::Operation *> ops) { touched_.insert(ops.begin(), ops.end()); }
  /// Says why a group stays; what the last round says is told.
  void stays(mlir::Operation *first, const llvm::Twine &text) {
    stays_.push_back({first->getLoc(), text.str()});
  }
  /// Says what moves into, or out of, `place`, and touches both.
  void report(const Moved &moved, mlir::Operation *place, const llvm::Twine &text);
  /// Takes an operation that nobody uses any more out of the program, to be erased after the
  /// round: what the round knows still has its address.
  void bury(mlir::Operation *op);

  mlir::ModuleOp module_;
  PassContext &context_;
  CallGraph calls_;
  mlir::SymbolTable symbols_;
  OperatorWork work_;
  bool training_;
  int64_t room_ = 0, looked_ = 0;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<mlir::Operation *>> products_; ///< by weight
  llvm::DenseSet<mlir::Operation *> guests_; ///< operators that may run in vain where they are
  llvm::DenseSet<mlir::Operation *> copies_; ///< operators of tails in arms
  std::unique_ptr<Snapshot> now_;
  llvm::DenseSet<mlir::Operation *> touched_;
  llvm::SmallVector<mlir::Operation *> buried_;
  llvm::SetVector<mlir::Operation *> changed_; ///< functions
  std::vector<Remark> stays_;
};

/// "sigmoid, mul": for remarks.
std::string namesOf(llvm::ArrayRef<mlir::Operation *> group);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_PASSES_CODEMOTION_H
