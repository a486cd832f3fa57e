//===- Sites.cpp - What happens at each place of a program ----------------===//
#include "compiler/driver/Sites.h"

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/Forks.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/RecordFlow.h"
#include "compiler/ir/Place.h"
#include "compiler/model/KernelInstances.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/MapVector.h"

#include <fmt/format.h>

using namespace mlir;

namespace sheaf::driver {
namespace {

using passes::RecordFlow;
using passes::RecordSite;

std::string join(llvm::ArrayRef<std::string> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The same words once.
std::vector<std::string> distinct(std::vector<std::string> words) {
  std::vector<std::string> out;
  for (std::string &word : words)
    if (std::find(out.begin(), out.end(), word) == out.end())
      out.push_back(std::move(word));
  return out;
}

std::string fileOfPlace(const std::string &place) { return place.substr(0, place.rfind(':')); }

/// Of a file that the model uses with its name.
std::string lineOf(Operation *op) {
  return lineText(ir::placeOf(op->getLoc()), op->getParentOfType<ModuleOp>());
}

/// The depths of its phase at which a site records.
struct Depths {
  bool bounded = true;
  unsigned least = 0, most = 0;
};

class Describer {
public:
  Describer(ModuleOp program, const std::vector<BlockInfo> &blocks)
      : program_(program), symbols_(program), blocks_(blocks), instances_(program), graph_(program),
        flow_(program), needs_(flow_.closure()), demanded_(flow_.demanded()) {
    for (auto [number, site] : llvm::enumerate(flow_.sites())) {
      sitesOf_[site.op].push_back(number);
      looksUp_ |= site.op->hasAttr("sheaf.once");
    }
    program.walk([&](func::CallOp call) {
      if (passes::isForked(call))
        forked_.insert(symbols_.lookup(call.getCallee()));
    });
    findDepths();
  }

  std::vector<FunctionInfo> run() {
    std::vector<FunctionInfo> functions;
    for (auto func : program_.getOps<func::FuncOp>()) {
      FunctionInfo info;
      info.name = func.getName().str();
      info.place = ir::placeOf(func.getLoc());
      if (func->hasAttr(ir::kFoldedAttr)) {
        info.notes.push_back("computes what follows from weights alone, when they are loaded");
        functions.push_back(std::move(info));
        continue;
      }
      if (graph_.isRecursive(func))
        info.notes.push_back("calls itself");
      info.notes.push_back(readers_.contains(func)
                               ? "may read: runs on a stack of its own, so that others go on "
                                 "while it waits"
                           : forked_.contains(func)
                               ? "never reads, but waits for what it takes: runs on a stack of its "
                                 "own"
                           : readers_.empty() ? "never reads: a plain call"
                                              : "never reads: a plain call, on its caller's stack");
      func.walk<WalkOrder::PreOrder>([&](Operation *op) { describe(op, info); });
      functions.push_back(std::move(info));
    }
    return functions;
  }

private:
  unsigned kernel(unsigned number) const {
    const RecordSite &site = flow_.sites()[number];
    return site.role.empty() ? instances_.of(cast<ir::RecordOp>(site.op))
                             : instances_.of(site.op, site.role);
  }
  unsigned phase(unsigned number) const { return instances_.all()[kernel(number)].phase; }
  const std::string &name(unsigned number) const { return blocks_[kernel(number)].name; }

  /// Whoever needs a site needs all that the site needs, and the site itself, which a recursive one
  /// counts already.
  void findDepths() {
    unsigned count = flow_.sites().size();
    std::vector<unsigned> order(count);
    for (unsigned i = 0; i < count; ++i)
      order[i] = i;
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return std::tuple(needs_[a].count(), !needs_[a][a], a) <
             std::tuple(needs_[b].count(), !needs_[b][b], b);
    });
    depths_.resize(count);
    for (unsigned i : order) {
      Depths &own = depths_[i];
      own.bounded = !needs_[i][i];
      for (const llvm::BitVector &argument : flow_.arguments(i)) {
        Depths ready{true, ~0u, 0};
        for (unsigned maker : argument.set_bits()) {
          Depths at;
          if (flow_.isSite(maker) && phase(maker) == phase(i))
            at = {depths_[maker].bounded, depths_[maker].least + 1, depths_[maker].most + 1};
          ready = {ready.bounded && at.bounded, std::min(ready.least, at.least),
                   std::max(ready.most, at.most)};
        }
        if (argument.none())
          continue;
        own = {own.bounded && ready.bounded, std::max(own.least, ready.least),
               std::max(own.most, ready.most)};
      }
    }
  }

  //===--- Values ------------------------------------------------------------===//

  std::string argumentText(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto func = dyn_cast<func::FuncOp>(parent)) {
      if (auto name = func.getArgAttrOfType<StringAttr>(number, "sheaf.name"))
        return name.getValue().str();
      return fmt::format("argument {} of {}", number + 1, func.getName().str());
    }
    if (isa<ir::MatchOp>(parent))
      return fmt::format("a field of what {} matches", lineOf(parent));
    if (isa<ir::FoldOp, ir::ScanOp>(parent) && number == 0)
      return fmt::format("what the loop of {} carries", lineOf(parent));
    return fmt::format("an element of the list of {}", lineOf(parent));
  }

  /// What a per-instance argument is.
  std::string valueText(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argumentText(argument);
    Operation *op = value.getDefiningOp();
    if (auto joined = dyn_cast<ir::JoinedOp>(op))
      return valueText(joined.getInputs()[cast<OpResult>(value).getResultNumber()]);
    if (auto ghost = dyn_cast<ir::GhostOp>(op))
      return fmt::format("{}, held back by {}", valueText(ghost.getTensor()),
                         static_cast<int64_t>(ghost.getDepths()));
    if (auto it = sitesOf_.find(op); it != sitesOf_.end())
      return fmt::format("what {} made in {}", name(it->second.back()), lineOf(op));
    if (auto call = dyn_cast<func::CallOp>(op))
      return fmt::format("what {} gives in {}", call.getCallee().str(), lineOf(op));
    if (isa<scf::IfOp, ir::MatchOp>(op)) {
      int64_t held = 0;
      for (Region &region : op->getRegions())
        if (auto ghost = region.front()
                             .getTerminator()
                             ->getOperand(cast<OpResult>(value).getResultNumber())
                             .getDefiningOp<ir::GhostOp>())
          held = std::max(held, static_cast<int64_t>(ghost.getDepths()));
      return fmt::format("what the branches of {} give{}", lineOf(op),
                         held ? fmt::format(", the shorter held back by {}", held) : "");
    }
    if (auto get = dyn_cast<ir::GetOp>(op))
      return valueText(get.getTuple());
    if (auto ref = dyn_cast<ir::ParamRefOp>(op))
      return fmt::format("{}, where others are given something else", ref.getParam().str());
    if (isa<ir::ApplyOp>(op)) {
      auto ref = op->getOperand(0).getDefiningOp<ir::ParamRefOp>();
      return ref ? fmt::format("a row of {}, chosen by the instance", ref.getParam().str())
                 : "a row of " + valueText(op->getOperand(0));
    }
    if (isa<ir::FoldOp>(op))
      return fmt::format("what the loop of {} gives", lineOf(op));
    if (isa<ir::ListGetOp>(op))
      return fmt::format("an element of the list of {}", lineOf(op));
    if (!passes::mayHoldTensors(value.getType()))
      return "a number of the instance";
    return fmt::format("a value made in {}", lineOf(op));
  }

  //===--- Sites -------------------------------------------------------------===//

  std::string depthText(unsigned number) const {
    const Depths &depths = depths_[number];
    std::string phase =
        this->phase(number) > 0
            ? fmt::format("phase {}, after all of earlier phases", this->phase(number))
            : "phase 0";
    if (demanded_[number])
      phase += ", counted from where the last wait ended";
    if (depths.bounded && depths.least == depths.most)
      return fmt::format("{}; depth {}, known beforehand{}", phase, depths.least,
                         demanded_[number] ? "" : ": all instances at once");
    if (depths.bounded)
      return fmt::format("{}; depth {} to {}, by the way that an instance takes", phase,
                         depths.least, depths.most);
    std::vector<std::string> makers;
    for (const llvm::BitVector &argument : flow_.arguments(number))
      for (unsigned maker : argument.set_bits())
        if (flow_.isSite(maker) && this->phase(maker) == this->phase(number))
          makers.push_back(name(maker));
    return fmt::format("{}; one deeper than what it takes of {}", phase, join(distinct(makers)));
  }

  /// Why not all of its records run together.
  std::string apartText(unsigned number) const {
    if (!needs_[number][number])
      return depths_[number].bounded
                 ? ""
                 : "not batched where depths differ: after a recursion of the same phase";
    std::vector<std::string> others;
    for (unsigned other : needs_[number].set_bits())
      if (needs_[other][number])
        others.push_back(name(other));
    return "not batched with what it is made of: a recursion of " + join(distinct(others));
  }

  bool mayRead(Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          auto call = dyn_cast<func::CallOp>(inner);
          bool reads = isa<ir::ReadOp>(inner) ||
                       (call && readers_.contains(symbols_.lookup(call.getCallee())));
          return reads ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// What keeps a call that may read from running beside others.
  std::string whyNotForked(func::CallOp call) {
    if (emitters_.contains(symbols_.lookup(call.getCallee())))
      return "what it emits has its place in the order of the program";
    auto reads = [&](Operation *op) { return mayRead(op); };
    if (passes::readsBeside(call, reads))
      return "fork-calls is left out";
    Operation *waits = nullptr; // the first that needs the result
    for (Operation *next = call->getNextNode(); next; next = next->getNextNode()) {
      if (!waits && passes::waitsFor(next, call))
        waits = next;
      if (waits && mayRead(next))
        return fmt::format("{} needs its result before anything after it may read", lineOf(waits));
    }
    if (isa<ir::FoldOp, ir::ScanOp>(call->getParentOp()))
      return "each turn of the loop needs the one before";
    return "nothing after it here may read";
  }

  /// What gives the arguments that a fork itself waits for.
  std::vector<std::string> awaitedBy(func::CallOp call) {
    std::vector<std::string> awaited;
    for (Value operand : call.getOperands()) {
      while (auto get = operand.getDefiningOp<ir::GetOp>())
        operand = get.getTuple();
      Operation *fork = operand.getDefiningOp();
      if (!fork || !passes::isForked(fork))
        continue;
      Operation *here = fork->getBlock()->findAncestorOpInBlock(*call), *next = fork;
      while (next != here && !passes::waitsFor(next->getNextNode(), fork))
        next = next->getNextNode();
      if (next == here)
        awaited.push_back(valueText(operand));
    }
    return distinct(awaited);
  }

  void describeSite(unsigned number, SiteInfo &info) {
    const RecordSite &site = flow_.sites()[number];
    const BlockInfo &block = blocks_[kernel(number)];
    info.notes.push_back(block.weights.empty()
                             ? "shared by the batch: nothing"
                             : fmt::format("shared by the batch: {}; no other parameter comes here",
                                           join(block.weights)));
    std::vector<std::string> own;
    if (site.role == "sheaf.arrange")
      own.push_back("the rows that were copied");
    else
      for (Value operand : site.op->getOperands())
        own.push_back(valueText(operand));
    if (!own.empty())
      info.notes.push_back("per instance: " + join(distinct(own)));
    info.notes.push_back(depthText(number));
    if (std::string apart = apartText(number); !apart.empty())
      info.notes.push_back(apart);
    if (!readers_.empty())
      info.notes.push_back(demanded_[number] ? "a read may depend on it: runs when instances wait"
                                             : "no read depends on it: waits until all are walked");
    if (site.role.empty() && looksUp_)
      info.notes.push_back(site.op->hasAttr("sheaf.once")
                               ? "looked up: records with equal arguments run once"
                               : "not looked up: floats or draws of the instance's own go into it");
  }

  void describe(Operation *op, FunctionInfo &function) {
    auto add = [&](std::string what) -> SiteInfo & {
      SiteInfo &info = function.sites.emplace_back();
      info.place = ir::placeOf(op->getLoc());
      info.what = std::move(what);
      return info;
    };
    if (auto it = sitesOf_.find(op); it != sitesOf_.end()) {
      for (unsigned number : it->second) {
        const BlockInfo &block = blocks_[kernel(number)];
        llvm::StringRef role = flow_.sites()[number].role;
        describeSite(number, add(fmt::format("{} {} ({})",
                                             role.empty()              ? "records"
                                             : passes::appendsRows(op) ? "appends by"
                                             : role == "sheaf.copy"    ? "records for each element"
                                                                       : "then records",
                                             block.name, join(block.operators))));
      }
      return;
    }
    if (isa<ir::ReadOp>(op)) {
      std::vector<std::string> makers;
      for (unsigned maker : flow_.makers(op->getOperand(0)).set_bits())
        if (flow_.isSite(maker))
          makers.push_back(name(maker));
      add("reads").notes.push_back(makers.empty() ? "a tensor that is there: does not wait"
                                                  : "waits, unless it is there, for what " +
                                                        join(distinct(makers)) + " makes");
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
      SiteInfo &info = add("calls " + call.getCallee().str());
      if (passes::isForked(call)) {
        info.notes.push_back(readers_.contains(callee)
                                 ? "forked: it may read, and so may something after it that does "
                                   "not need it"
                                 : "forked: it takes what others wait for, and something after "
                                   "it may read that does not need it");
        if (std::vector<std::string> awaited = awaitedBy(call); !awaited.empty())
          info.notes.push_back("begins when there is " + join(awaited));
      } else if (!readers_.contains(callee))
        info.notes.push_back("a plain call: what it records meets what others do by depth");
      else
        info.notes.push_back("not forked: it may read, and " + whyNotForked(call));
    }
  }

  ModuleOp program_;
  SymbolTable symbols_;
  const std::vector<BlockInfo> &blocks_;
  host::KernelInstances instances_;
  passes::CallGraph graph_;
  RecordFlow flow_;
  std::vector<llvm::BitVector> needs_;
  llvm::BitVector demanded_;
  std::vector<Depths> depths_; ///< by site
  llvm::DenseMap<Operation *, SmallVector<unsigned>> sitesOf_;
  llvm::DenseSet<Operation *> readers_ = graph_.readers(), emitters_ = graph_.emitters();
  llvm::DenseSet<Operation *> forked_; ///< functions that some call forks
  bool looksUp_ = false;               ///< any record is looked up
};

} // namespace

std::string lineText(const std::string &place, ModuleOp program) {
  std::string line = "line " + place.substr(place.rfind(':') + 1);
  std::string file = fileOfPlace(place);
  return file == fileOfPlace(ir::placeOf(program.getLoc())) ? line : line + " of " + file;
}

std::vector<FunctionInfo> describeSites(ModuleOp program, const std::vector<BlockInfo> &blocks) {
  return Describer(program, blocks).run();
}

} // namespace sheaf::driver
