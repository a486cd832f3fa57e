//===- SizeCounters.cpp - Recursions that count, with bounds --------------===//

#include "compiler/analysis/SizeWalk.h"

#include "compiler/analysis/KnownValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// The parameter of a function that a value is.
std::optional<unsigned> parameterOf(func::FuncOp func, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &func.getBody().front())
    return std::nullopt;
  return argument.getArgNumber();
}

/// By how much a call that a function makes of itself counts a parameter on, if that is known.
std::optional<int64_t> stepOf(func::FuncOp func, func::CallOp call, unsigned parameter) {
  Value given = call.getOperand(parameter), own = func.getArgument(parameter);
  if (given == own)
    return 0;
  auto add = given.getDefiningOp<arith::AddIOp>();
  if (add && add.getLhs() == own)
    return intConstant(add.getRhs());
  auto sub = given.getDefiningOp<arith::SubIOp>();
  std::optional<int64_t> less =
      sub && sub.getLhs() == own ? intConstant(sub.getRhs()) : std::nullopt;
  return less && *less > INT32_MIN ? std::optional(-*less) : std::nullopt;
}

} // namespace

std::optional<Bound> SizeWalk::countedCalls(func::FuncOp func, const Values &args) {
  SmallVector<func::CallOp> calls;
  func.walk([&](func::CallOp call) {
    func::FuncOp callee = calleeOf(call);
    if (graph_.isRecursive(callee) && graph_.sameCycle(callee, func))
      calls.push_back(call);
  });
  std::optional<Bound> most;
  for (func::CallOp call : calls) {
    if (calleeOf(call) != func)
      return std::nullopt;
    std::optional<Bound> own;
    // A branch around it that is not taken any more when the number is large enough.
    for (Operation *inner = call; !own && inner != func; inner = inner->getParentOp()) {
      auto branch = dyn_cast<scf::IfOp>(inner->getParentOp());
      auto cmp = branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
      if (!cmp)
        continue;
      bool isThen = inner->getParentRegion() == &branch.getThenRegion();
      using P = arith::CmpIPredicate;
      P predicate = isThen ? cmp.getPredicate() : arith::invertPredicate(cmp.getPredicate());
      Value low = cmp.getLhs(), high = cmp.getRhs();
      if (predicate == P::sgt || predicate == P::sge) {
        std::swap(low, high);
        predicate = predicate == P::sgt ? P::slt : P::sle;
      }
      if (predicate != P::slt && predicate != P::sle && predicate != P::ne)
        continue;
      // What neither call changes is a limit.
      auto limitOf = [&](Value value) -> std::optional<SizeNumber> {
        if (std::optional<int64_t> number = intConstant(value))
          return SizeNumber{*number, Bound(static_cast<double>(*number))};
        std::optional<unsigned> held = parameterOf(func, value);
        if (held && stepOf(func, call, *held) == 0)
          return args[*held].number;
        return std::nullopt;
      };
      for (bool up : {true, false}) {
        std::optional<unsigned> counter = parameterOf(func, up ? low : high);
        if (!counter && predicate == P::ne)
          counter = parameterOf(func, up ? high : low);
        std::optional<int64_t> step = counter ? stepOf(func, call, *counter) : std::nullopt;
        bool isFirst = counter && func.getArgument(*counter) == low;
        std::optional<SizeNumber> limit = limitOf(isFirst ? high : low);
        if (!step || !limit || (up ? *step <= 0 : *step >= 0))
          continue;
        const SizeNumber &begin = args[*counter].number;
        const SizeNumber &from = up ? begin : *limit, &to = up ? *limit : begin;
        if (from.least < INT32_MIN)
          continue;
        // Counted one by one it meets a limit that it does not begin beyond.
        if (predicate == P::ne) {
          std::optional<double> most = from.most.constant();
          bool meets = most && from.least >= 0 && to.least >= static_cast<int64_t>(*most);
          if (std::abs(*step) != 1 || !meets)
            continue;
        }
        auto first = static_cast<double>(from.least);
        own = (first >= 0 ? to.most.less(first) : to.most + Bound(-first)) +
              Bound(predicate == P::sle ? 2 : 1);
      }
    }
    // Every call must count up to the same limit, or they could take turns.
    if (!own || (most && !(*most == *own)))
      return std::nullopt;
    most = own;
  }
  return most;
}

} // namespace sheaf::passes
