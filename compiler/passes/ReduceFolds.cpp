//===- ReduceFolds.cpp - Folds of lists as one operator -------------------===//
//
// fold(|s, x| s + f(x), init, xs) becomes fold_add(init, map(f, xs)): one operator over all
// elements in place of a record for each that waits for the one before. The operator takes the
// elements from left to right, as the fold does, so the bits are the same and the operation need
// not be associative; f runs for all elements at once. It is tensor code like any other and goes
// into the block of what uses it.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/Readers.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// One of the tensors that a fold carries: `step` applies an operator to it and `element`.
struct FoldPart {
  ir::ApplyOp step;
  Value element;
  bool reversed; ///< the element is its left operand
};

class FoldReducer {
public:
  FoldReducer(ir::FoldOp fold, const Readers &readers, PassContext &context)
      : fold_(fold), readers_(readers), context_(context), body_(fold.getBody().front()) {}

  void run() {
    if (findParts())
      replace();
  }

private:
  bool refuse(const Twine &why) {
    context_.remark(fold_.getLoc(), "this fold runs step by step: " + why);
    return false;
  }

  /// The fields of a carried tuple, or what is carried itself.
  static SmallVector<Type> typesOf(Type carried) {
    if (auto tuple = dyn_cast<TupleType>(carried))
      return llvm::to_vector(tuple.getTypes());
    return {carried};
  }

  bool findParts() {
    SmallVector<Type> types = typesOf(fold_.getType());
    if (llvm::none_of(types, llvm::IsaPred<RankedTensorType>))
      return false; // the host's own numbers and lists
    if (!llvm::all_of(types, llvm::IsaPred<RankedTensorType>))
      return refuse(
          "it carries something else beside tensors; a count of elements is len of the list");
    if (fold_.getInit().getType() != fold_.getType())
      return refuse("it begins with other extents than it goes on with");
    Value yielded = body_.getTerminator()->getOperand(0);
    auto tuple = yielded.getDefiningOp<ir::TupleOp>();
    if (isa<TupleType>(fold_.getType()) && !tuple)
      return refuse("what it carries is not made field by field");
    if (tuple && !tuple->hasOneUse())
      return refuse("what it carries is used for more than its next value");
    for (auto [number, type] : llvm::enumerate(types)) {
      Value next = tuple ? tuple.getFields()[number] : yielded;
      if (!addPart(cast<RankedTensorType>(type), static_cast<unsigned>(number), next))
        return false;
    }
    if (hasOtherUses())
      return refuse("what it carries is used for more than its next value");
    if (readers_.reads(body_))
      return refuse("it reads, and what its steps made is not kept until the last");
    lookAtElements();
    return !isLight_ || refuse("what it takes of an element has no product: each step computes it "
                               "along, without a record of its own");
  }

  bool addPart(RankedTensorType type, unsigned number, Value next) {
    auto step = next.getDefiningOp<ir::ApplyOp>();
    bool applies = step && step->getBlock() == &body_ && step.getNumOperands() == 2 &&
                   step.getAttrs().empty() && ops::OpTable::get().find(ops::foldOf(step.getOp()));
    bool isLeft = applies && isCarried(step.getOperand(0), number);
    if (!isLeft && !(applies && isCarried(step.getOperand(1), number)))
      return refuse("its next value is not add, mul, maximum or minimum of what it carries and of "
                    "something else");
    if (!llvm::all_of(step->getOperandTypes(), [&](Type t) { return t == type; }) ||
        step.getResult(0).getType() != type)
      return refuse("elements have other extents than what it carries");
    if (!type.hasStaticShape())
      return refuse("it carries tensors of extents that are not known here");
    if (type.getElementType().isF16() || type.getElementType().isBF16())
      return refuse("every step rounds what it carries to 16 bits");
    if (!next.hasOneUse())
      return refuse("what it carries is used for more than its next value");
    parts_.push_back({step, step.getOperand(isLeft ? 1 : 0), !isLeft});
    return true;
  }

  bool isCarried(Value value, unsigned number) const {
    Value state = body_.getArgument(0);
    if (auto get = value.getDefiningOp<ir::GetOp>())
      return get.getTuple() == state && get.getIndex() == number;
    return value == state;
  }

  /// Whether the state is read but by the steps, each once.
  bool hasOtherUses() const {
    llvm::SmallPtrSet<Operation *, 4> steps;
    for (const FoldPart &part : parts_)
      steps.insert(part.step);
    unsigned uses = 0;
    for (Operation *user : body_.getArgument(0).getUsers()) {
      bool taken = isa<ir::GetOp>(user);
      for (Operation *reader : taken ? llvm::to_vector(user->getUsers()) : SmallVector{user}) {
        if (!steps.contains(reader))
          return true;
        ++uses;
      }
    }
    return uses != parts_.size();
  }

  /// What the body does for each element, beside the steps.
  void lookAtElements() {
    bool multiplies = false;
    body_.walk([&](Operation *op) {
      bool isStep = llvm::any_of(parts_, [&](const FoldPart &part) { return op == part.step; });
      bool isCall = isa<func::CallOp>(op);
      computes_ |= isCall || (isTensorCode(op) && !isFill(op) && !isStep);
      multiplies |= isCall || batchRule<ops::Product>(op);
    });
    isLight_ = computes_ && !multiplies;
  }

  void replace() {
    Location loc = fold_.getLoc();
    ImplicitLocOpBuilder builder(loc, fold_);
    SmallVector<Value> lists = listsOfElements(builder), results;
    std::string names;
    for (auto [number, part, list] : llvm::enumerate(parts_, lists)) {
      Value init = fold_.getInit();
      if (isa<TupleType>(fold_.getType()))
        init = builder.createOrFold<ir::GetOp>(
            part.step.getResult(0).getType(), init,
            builder.getI64IntegerAttr(static_cast<int64_t>(number)));
      std::string name = ops::foldOf(part.step.getOp());
      builder.setLoc(part.step.getLoc());
      results.push_back(
          ops::applyOne(builder, name, {init, list}, {{"reversed", int64_t(part.reversed)}}));
      names += (names.empty() ? "" : ", ") + name;
    }
    context_.remark(loc,
                    "this fold is " + names + " over all elements" +
                        (computes_ ? "; what it takes of them is computed for all at once" : ""));
    if (isa<TupleType>(fold_.getType()))
      giveFields(builder, results);
    else
      fold_.getResult().replaceAllUsesWith(results.front());
    fold_.erase();
  }

  /// Those who take fields get them as they are: a tuple would keep them out of blocks.
  void giveFields(ImplicitLocOpBuilder &builder, ArrayRef<Value> results) {
    for (Operation *user : llvm::make_early_inc_range(fold_.getResult().getUsers()))
      if (auto get = dyn_cast<ir::GetOp>(user)) {
        get.getResult().replaceAllUsesWith(results[get.getIndex()]);
        get.erase();
      }
    if (!fold_.getResult().use_empty())
      fold_.getResult().replaceAllUsesWith(
          ir::TupleOp::create(builder, fold_.getType(), results).getResult());
  }

  /// For each part the list of what its steps take.
  SmallVector<Value> listsOfElements(ImplicitLocOpBuilder &builder) {
    Value list = fold_.getList();
    bool isPlain = parts_.size() == 1 && parts_[0].element == body_.getArgument(1) &&
                   llvm::all_of(body_.without_terminator(),
                                [&](Operation &op) { return &op == parts_[0].step; });
    if (isPlain)
      return {list};
    SmallVector<Type> types;
    for (const FoldPart &part : parts_)
      types.push_back(part.element.getType());
    Type element = types.size() == 1 ? types[0] : TupleType::get(builder.getContext(), types);
    auto map = ir::MapOp::create(builder, ir::ListType::get(builder.getContext(), element), list);
    Block &made = map.getBody().emplaceBlock();
    IRMapping mapping;
    for (BlockArgument arg : body_.getArguments().drop_front())
      mapping.map(arg, made.addArgument(arg.getType(), arg.getLoc()));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&made);
      for (Operation &op : body_.without_terminator())
        if (!isOfState(&op))
          builder.clone(op, mapping);
      SmallVector<Value> elements;
      for (const FoldPart &part : parts_)
        elements.push_back(mapping.lookupOrDefault(part.element));
      Value yielded = elements.front();
      if (elements.size() > 1)
        yielded = ir::TupleOp::create(builder, element, elements);
      ir::YieldOp::create(builder, yielded);
    }
    if (parts_.size() == 1)
      return {map.getResult()};
    SmallVector<Value> lists;
    for (auto [number, type] : llvm::enumerate(types))
      lists.push_back(fieldOf(builder, map.getResult(), type, static_cast<int64_t>(number)));
    return lists;
  }

  /// A list of the field of each tuple of a list.
  static Value fieldOf(ImplicitLocOpBuilder &builder, Value list, Type type, int64_t number) {
    auto map = ir::MapOp::create(builder, ir::ListType::get(builder.getContext(), type), list);
    OpBuilder::InsertionGuard guard(builder);
    Block &body = map.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&body);
    Value tuple = body.addArgument(cast<ir::ListType>(list.getType()).getElement(), map.getLoc());
    Value field = ir::GetOp::create(builder, type, tuple, builder.getI64IntegerAttr(number));
    ir::YieldOp::create(builder, field);
    return map.getResult();
  }

  /// The steps, what takes the state apart for them, and the tuple of their results.
  bool isOfState(Operation *op) const {
    if (isa<ir::GetOp>(op))
      return op->getOperand(0) == body_.getArgument(0);
    return op == body_.getTerminator()->getOperand(0).getDefiningOp() ||
           llvm::any_of(parts_, [&](const FoldPart &part) { return op == part.step; });
  }

  ir::FoldOp fold_;
  const Readers &readers_;
  PassContext &context_;
  Block &body_;
  SmallVector<FoldPart> parts_;
  bool computes_ = false; ///< there is tensor code for each element
  bool isLight_ = false;  ///< but no product: a step computes it at no cost
};

LogicalResult reduceFolds(ModuleOp module, PassContext &context) {
  // The backward pass knows which rows a record read by its words alone.
  if (module->hasAttr(ops::kTrainingAttr)) {
    context.remark(module.getLoc(), "in training every step of a fold has a gradient of its own");
    return success();
  }
  SmallVector<ir::FoldOp> folds;
  module.walk([&](ir::FoldOp fold) { folds.push_back(fold); });
  Readers readers(module);
  // Those inside of others come first.
  for (ir::FoldOp fold : folds)
    FoldReducer(fold, readers, context).run();
  return success();
}

} // namespace

PassRecord reduceFoldsPass() {
  return {
      .name = "reduce-folds",
      .description =
          "A fold that adds, multiplies or compares what it carries with something of each "
          "element becomes one operator over the list, in the order of the fold. Products in what "
          "it takes of the elements are computed for all of them at once; the operator reads "
          "their rows where they are and is part of the block of what uses it.",
      .run = reduceFolds};
}

} // namespace sheaf::passes
