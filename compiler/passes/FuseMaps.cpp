//===- FuseMaps.cpp - A map over what a map has made ----------------------===//
//
// map(g, map(f, xs)) is map(x -> g(f(x)), xs): tensor code of f and g that follows from one element
// becomes one block. Where both lists are wanted, and only side by side (zip of the two), the one
// map makes the list of pairs.
//
// g is straight-line code that cannot fail, so errors keep their order, and its tensor code takes
// what one block of f makes, constants and what that block takes already: then the block waits no
// longer, and equal records of it are met as often (identical-records).
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Grouping.h"
#include "compiler/passes/OpQueries.h"
#include "compiler/passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Whether it is straight-line code of which nothing may fail, draw or know which element it is at.
bool isPlain(ir::MapOp map) {
  Block &body = map.getBody().front();
  if (!llvm::all_of(body.getArguments().drop_front(),
                    [](BlockArgument argument) { return argument.use_empty(); }))
    return false;
  return llvm::all_of(body.without_terminator(), [](Operation &op) {
    // Operators may fail by ints alone.
    bool takesInts = isa<ir::ApplyOp>(op) && llvm::any_of(op.getOperandTypes(), [](Type type) {
                       return type.isInteger(64) || isa<ir::TokenType, ir::ListType>(type);
                     });
    const ops::Op *record = operatorOf(&op);
    return !takesInts && op.getNumRegions() == 0 && isPure(&op) && !(record && record->draws());
  });
}

bool hasTensorCode(ir::MapOp map) {
  return llvm::any_of(map.getBody().front(), [](Operation &op) { return isTensorCode(&op); });
}

/// The value in the body of `first` that a value of the body of `second` is: the element, or a
/// field of it. Null when it is none, or not made on the spot.
Value inFirst(ir::MapOp first, ir::MapOp second, Value value) {
  SmallVector<int64_t> path;
  while (auto get = value.getDefiningOp<ir::GetOp>()) {
    path.push_back(static_cast<int64_t>(get.getIndex()));
    value = get.getTuple();
  }
  if (value != second.getBody().front().getArgument(0))
    return Value();
  Value found = first.getBody().front().getTerminator()->getOperand(0);
  for (int64_t index : llvm::reverse(path)) {
    auto tuple = found.getDefiningOp<ir::TupleOp>();
    if (!tuple)
      return Value();
    found = tuple.getFields()[static_cast<size_t>(index)];
  }
  return found;
}

/// One round: what it fuses is not looked at again before the next.
class MapFuser {
public:
  MapFuser(ModuleOp module, PassContext &context) : context_(context), groups_(module) {
    module.walk([&](ir::ApplyOp apply) {
      if (batchRule<ops::Product>(apply))
        for (Value operand : apply.getOperands())
          if (auto ref = operand.getDefiningOp<ir::ParamRefOp>())
            ++products_[ref.getParamAttr()];
    });
  }
  ~MapFuser() {
    for (Operation *op : fused_)
      op->destroy();
  }

  /// Why maps stay apart.
  const std::vector<Remark> &stays() const { return stays_; }

  /// Whether anything was fused.
  bool run(func::FuncOp func) {
    SmallVector<ir::MapOp> maps;
    func.walk([&](ir::MapOp map) { maps.push_back(map); });
    size_t before = fused_.size();
    for (ir::MapOp second : maps) // in the order of the program: chains join from their beginning
      if (auto first = second.getList().getDefiningOp<ir::MapOp>();
          first && !touched_.contains(first) && !touched_.contains(second))
        consider(first, second);
    return fused_.size() > before;
  }

private:
  /// All that reads either list, when that is zips of the two in this order.
  static std::optional<SmallVector<ir::ZipOp>> zipsOf(ir::MapOp first, ir::MapOp second) {
    SmallVector<ir::ZipOp> zips;
    for (Operation *user : second.getResult().getUsers()) {
      auto zip = dyn_cast<ir::ZipOp>(user);
      if (!zip || zip.getLists().size() != 2 || zip.getLists()[0] != first.getResult() ||
          zip.getLists()[1] != second.getResult())
        return std::nullopt;
      zips.push_back(zip);
    }
    for (Operation *user : first.getResult().getUsers())
      if (user != second && !llvm::is_contained(zips, user))
        return std::nullopt;
    return zips;
  }

  /// A kernel that runs elsewhere, too, would be two.
  bool isShared(ir::MapOp map) const {
    return map.getBody()
        .walk([&](ir::ApplyOp apply) {
          bool shared = batchRule<ops::Product>(apply) &&
                        llvm::any_of(apply.getOperands(), [&](Value operand) {
                          auto ref = operand.getDefiningOp<ir::ParamRefOp>();
                          return ref && products_.lookup(ref.getParamAttr()) > 1;
                        });
          return shared ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Why the tensor code of `second` would not be part of one block of `first`; null if it would.
  const char *obstacle(ir::MapOp first, ir::MapOp second) {
    constexpr const char *kNoBlock = "it takes what no one block makes",
                         *kMore = "it takes more than the other does";
    Block &body = second.getBody().front();
    const Group *host = nullptr;
    SmallVector<Value> others;
    for (Operation &op : body)
      for (Value operand : op.getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if (isConstant(maker))
          continue;
        bool isInside = operand.getParentBlock() == &body;
        if (!isInside)
          others.push_back(operand);
        if (!isInside || !isTensorCode(&op) || isTensorCode(maker))
          continue;
        Value made = inFirst(first, second, operand);
        if (!made)
          return kMore; // of the element, but host code made it
        const Group *group = groups_.making(made);
        if (!group) {
          others.push_back(made);
          continue;
        }
        if ((host && host != group) || group->front()->getParentRegion() != &first.getBody())
          return kNoBlock;
        host = group;
      }
    if (!host)
      return kNoBlock;
    bool all = llvm::all_of(others, [&](Value value) {
      return isConstant(value.getDefiningOp()) || llvm::any_of(*host, [&](Operation *op) {
               return llvm::is_contained(op->getOperands(), value);
             });
    });
    return all ? nullptr : kMore;
  }

  void consider(ir::MapOp first, ir::MapOp second) {
    if (first->getBlock() != second->getBlock() || !hasTensorCode(first) || !hasTensorCode(second))
      return;
    bool alone = first.getResult().hasOneUse();
    std::optional<SmallVector<ir::ZipOp>> zips;
    if (!alone && !(zips = zipsOf(first, second)))
      return;
    const char *why = nullptr;
    if (!isPlain(second))
      why = "it is more than straight-line code that cannot fail";
    else if (isShared(first) || isShared(second))
      why = "a kernel of theirs runs elsewhere, too";
    else
      why = obstacle(first, second);
    if (why) {
      stays_.push_back(
          {second.getLoc(),
           std::string("the map stays apart from the one that makes its list: ") + why});
      return;
    }
    context_.remark(second.getLoc(), "the map becomes part of the one that makes its list");
    fuse(first, second, zips.value_or(SmallVector<ir::ZipOp>()));
  }

  void fuse(ir::MapOp first, ir::MapOp second, ArrayRef<ir::ZipOp> zips) {
    Block &body = first.getBody().front(), &more = second.getBody().front();
    Operation *end = body.getTerminator();
    Value element = end->getOperand(0);
    OpBuilder builder(end);
    IRMapping map;
    map.map(more.getArgument(0), element);
    for (Operation &op : more) {
      // Constants that are named between the two maps.
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp();
            isConstant(maker) && maker->getBlock() != &more && !map.contains(operand))
          map.map(operand, builder.clone(*maker)->getResult(0));
      auto get = dyn_cast<ir::GetOp>(op);
      auto tuple = get ? map.lookupOrDefault(get.getTuple()).getDefiningOp<ir::TupleOp>() : nullptr;
      if (tuple)
        map.map(get.getResult(), tuple.getFields()[get.getIndex()]);
      else if (&op != more.getTerminator())
        builder.clone(op, map);
    }
    Value made = map.lookupOrDefault(more.getTerminator()->getOperand(0));
    if (!zips.empty()) {
      auto type = TupleType::get(builder.getContext(), {element.getType(), made.getType()});
      made = ir::TupleOp::create(builder, second.getLoc(), type, ValueRange{element, made});
    }
    end->setOperand(0, made);

    builder.setInsertionPoint(first);
    auto fused =
        ir::MapOp::create(builder, first.getLoc(),
                          ir::ListType::get(builder.getContext(), made.getType()), first.getList());
    fused.getBody().takeBody(first.getBody());
    for (ir::ZipOp zip : zips) {
      zip.getResult().replaceAllUsesWith(fused.getResult());
      bury(zip);
    }
    second.getResult().replaceAllUsesWith(fused.getResult());
    bury(second);
    bury(first);
    touched_.insert(fused);
  }

  /// Out of the program, to be erased behind the round: what the round knows still has its address.
  void bury(Operation *op) {
    op->dropAllReferences();
    op->remove();
    touched_.insert(op);
    fused_.push_back(op);
  }

  PassContext &context_;
  Groups groups_;
  llvm::DenseSet<Operation *> touched_;
  SmallVector<Operation *> fused_;
  std::vector<Remark> stays_;
  llvm::DenseMap<Attribute, unsigned> products_; ///< by weight
};

/// Of chains of maps every second one is left; so often.
constexpr unsigned kMostRounds = 6;

LogicalResult run(ModuleOp module, PassContext &context) {
  std::vector<Remark> stays; // as the last round found them
  bool any = true;
  for (unsigned round = 0; round < kMostRounds && any; ++round) {
    any = false;
    bool hasPairs = module
                        .walk([](ir::MapOp map) {
                          return map.getList().getDefiningOp<ir::MapOp>() ? WalkResult::interrupt()
                                                                          : WalkResult::advance();
                        })
                        .wasInterrupted();
    if (!hasPairs)
      break;
    MapFuser fuser(module, context);
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isExternal() && !func->hasAttr(ir::kFoldedAttr))
        any |= fuser.run(func);
    stays = fuser.stays();
  }
  llvm::append_range(context.remarks, stays);
  return success();
}

} // namespace

PassRecord fuseMapsPass() {
  return {.name = "fuse-maps",
          .description =
              "A map over the list that another map makes becomes part of that one, so that "
              "tensor code of both is one block for each element.",
          .run = run};
}

} // namespace sheaf::passes
