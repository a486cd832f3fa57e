#include "compiler/analysis/RecordFlow.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Components.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace sheaf::passes {

bool mayHoldTensors(Type type) {
  return isa<RankedTensorType, TupleType, ir::ListType, ir::DataType>(type);
}

RecordFlow::RecordFlow(ModuleOp module, bool withFolded)
    : module_(module), withFolded_(withFolded), symbols_(module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (auto folded = func->getAttrOfType<ArrayAttr>(ir::kFoldedAttr))
      folded_.insert(folded.begin(), folded.end());
  findSites();
  none_.resize(sites_.size() + 3);
  forEachFunction([&](func::FuncOp func) {
    if (func.isPublic() && !func.isExternal())
      for (BlockArgument argument : func.getArguments())
        add(argument, argumentBit());
  });
  forEachFunction([&](func::FuncOp func) { func.walk([&](Operation *op) { visit(op); }); });
  solve();
  takeArguments();
}

void RecordFlow::forEachFunction(llvm::function_ref<void(func::FuncOp)> visit) {
  for (auto func : module_.getOps<func::FuncOp>())
    if (withFolded_ || !func->hasAttr(ir::kFoldedAttr))
      visit(func);
}

void RecordFlow::findSites() {
  ArrayAttr none = ArrayAttr::get(module_.getContext(), {});
  forEachFunction([&](func::FuncOp func) {
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      firstSite_.try_emplace(op, sites_.size());
      if (auto record = dyn_cast<ir::RecordOp>(op))
        sites_.push_back({op, "", record.getBlockAttr(), record.getWeights()});
      if (!isa<ir::ApplyOp>(op))
        return;
      for (StringRef role : {"sheaf.copy", "sheaf.arrange"})
        if (auto block = op->getAttrOfType<FlatSymbolRefAttr>(role))
          sites_.push_back({op, role, block, none});
    });
  });
}

const llvm::BitVector &RecordFlow::makers(Value value) const {
  auto it = numbers_.find(value);
  return it == numbers_.end() ? none_ : makers_[component_[it->second]];
}

unsigned RecordFlow::numberOf(Value value) {
  unsigned next = static_cast<unsigned>(sources_.size());
  auto [it, isNew] = numbers_.try_emplace(value, next);
  if (isNew)
    sources_.emplace_back();
  return it->second;
}

void RecordFlow::add(Value value, unsigned maker) {
  if (mayHoldTensors(value.getType()))
    added_.push_back({numberOf(value), maker});
}

void RecordFlow::pass(ValueRange sources, ValueRange values) {
  for (auto [source, value] : llvm::zip(sources, values))
    if (mayHoldTensors(source.getType()) && mayHoldTensors(value.getType())) {
      unsigned from = numberOf(source), to = numberOf(value);
      sources_[to].push_back(from);
    }
}

/// Values that hold each other's tensors have the same makers; sources come before what they reach.
void RecordFlow::solve() {
  Components components = findComponents(sources_);
  component_ = std::move(components.of);
  makers_.assign(component_.empty() ? 0 : component_[components.order.back()] + 1, none_);
  for (auto [value, maker] : added_)
    makers_[component_[value]].set(maker);
  for (unsigned value : components.order)
    for (unsigned source : sources_[value])
      if (component_[source] != component_[value])
        makers_[component_[value]] |= makers_[component_[source]];
  sources_.clear();
  added_.clear();
}

void RecordFlow::visitLoop(Operation *op) {
  Block &body = op->getRegion(0).front();
  Value list = op->getOperands().back(), result = op->getResult(0);
  ValueRange yielded = body.getTerminator()->getOperands();
  bool carries = carriesState(op);
  pass(list, body.getArgument(carries ? 1 : 0));
  if (carries) {
    pass(op->getOperand(0), body.getArgument(0));
    pass(yielded, body.getArgument(0));
  }
  if (isa<ir::FoldOp>(op))
    pass(op->getOperand(0), result);
  if (isa<ir::FilterOp>(op))
    pass(list, result);
  else
    pass(yielded, result);
}

void RecordFlow::visit(Operation *op) {
  if (isa<ir::RecordOp>(op)) {
    for (Value result : op->getResults())
      add(result, firstSite_.lookup(op));
  } else if (auto joined = dyn_cast<ir::JoinedOp>(op)) {
    pass(joined.getInputs().take_front(joined.getNumResults()), joined.getResults());
  } else if (copiesRows(op) && op->hasAttr("sheaf.copy")) {
    add(op->getResult(0), firstSite_.lookup(op) + op->hasAttr("sheaf.arrange"));
    if (appendsRows(op)) // the first rows may be where they were
      pass(op->getOperand(0), op->getResult(0));
  } else if (auto param = dyn_cast<ir::ParamRefOp>(op)) {
    add(param, isTrainable(param.getParamAttr()) ? paramBit() : constantBit());
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
    if (callee.isExternal())
      return;
    pass(call.getOperands(), callee.getArguments());
    pass(callee.front().getTerminator()->getOperands(), call.getResults());
  } else if (isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op)) {
    visitLoop(op);
  } else if (isa<scf::IfOp, ir::MatchOp>(op)) {
    for (Region &region : op->getRegions()) {
      if (region.empty())
        continue;
      for (BlockArgument field : region.getArguments())
        pass(op->getOperand(0), field);
      pass(region.front().getTerminator()->getOperands(), op->getResults());
    }
  } else {
    for (Value result : op->getResults())
      for (Value operand : op->getOperands())
        pass(operand, result);
  }
}

/// Constants are the compiler's; what is folded passes its gradient on to what it is made of.
bool RecordFlow::isTrainable(FlatSymbolRefAttr param) const {
  return folded_.contains(param) || !symbols_.lookup(param.getValue())->hasAttr("sheaf.synthetic");
}

void RecordFlow::takeArguments() {
  for (auto [number, site] : llvm::enumerate(sites_)) {
    std::vector<llvm::BitVector> &arguments = arguments_.emplace_back();
    if (site.role == "sheaf.arrange") {
      arguments.push_back(none_);
      arguments.back().set(number - 1);
      continue;
    }
    for (Value operand : site.op->getOperands())
      if (mayHoldTensors(operand.getType()))
        arguments.push_back(makers(operand));
    if (appendsRows(site.op)) { // both are copied by one block
      arguments.front() |= arguments.back();
      arguments.pop_back();
    }
  }
}

std::vector<llvm::BitVector> RecordFlow::closure() const {
  unsigned count = sites_.size();
  std::vector<llvm::BitVector> needs(count, llvm::BitVector(count));
  std::vector<std::vector<unsigned>> next(count);
  for (unsigned i = 0; i < count; ++i) {
    for (llvm::BitVector argument : arguments_[i]) {
      argument.resize(count); // without the bits of what is there
      needs[i] |= argument;
    }
    llvm::append_range(next[i], needs[i].set_bits());
  }
  Components components = findComponents(next);
  auto begin = components.order.begin();
  while (begin != components.order.end()) {
    auto end = std::find_if(begin, components.order.end(), [&](unsigned site) {
      return components.of[site] != components.of[*begin];
    });
    llvm::BitVector all(count);
    for (unsigned site : llvm::make_range(begin, end)) {
      all |= needs[site];
      for (unsigned other : next[site])
        if (components.of[other] != components.of[site])
          all |= needs[other];
    }
    for (; begin != end; ++begin)
      needs[*begin] = all;
  }
  return needs;
}

llvm::BitVector RecordFlow::demanded() const {
  llvm::MapVector<std::pair<Attribute, Attribute>, SmallVector<unsigned>> kernels;
  for (auto [number, site] : llvm::enumerate(sites_))
    kernels[{site.block, site.weights}].push_back(number);
  llvm::BitVector demanded = none_;
  SmallVector<unsigned> work;
  auto demand = [&](const llvm::BitVector &makers) {
    for (unsigned site : makers.set_bits())
      if (isSite(site) && !demanded[site])
        for (unsigned other : kernels[{sites_[site].block, sites_[site].weights}]) {
          demanded.set(other);
          work.push_back(other);
        }
  };
  bool reads = false;
  module_->walk([&](ir::ReadOp read) {
    reads = true;
    demand(makers(read.getTensor()));
  });
  // What is emitted is delivered after the next flush, whichever read that is for.
  if (reads)
    module_->walk([&](ir::EmitOp emit) { demand(makers(emit.getValue())); });
  while (!work.empty())
    for (const llvm::BitVector &argument : arguments_[work.pop_back_val()])
      demand(argument);
  demanded.resize(sites_.size());
  return demanded;
}

llvm::StringMap<llvm::BitVector> RecordFlow::onParameters(bool orOnArguments) const {
  llvm::StringMap<llvm::BitVector> dependent;
  llvm::BitVector carries = none_; // what has tensors that depend on one
  carries.set(paramBit());
  if (orOnArguments)
    carries.set(argumentBit());
  std::vector<SmallVector<unsigned>> users(sites_.size());
  llvm::DenseMap<Attribute, SmallVector<unsigned>> sitesOf;
  SmallVector<unsigned> work;
  for (auto [number, site] : llvm::enumerate(sites_)) {
    llvm::BitVector all = none_;
    for (const llvm::BitVector &argument : arguments_[number])
      all |= argument;
    for (unsigned maker : all.set_bits())
      if (isSite(maker))
        users[maker].push_back(number);
    sitesOf[site.block].push_back(number);
    work.push_back(number);
  }
  while (!work.empty()) {
    unsigned number = work.pop_back_val();
    const RecordSite &site = sites_[number];
    auto block = symbols_.lookup<ir::BlockOp>(site.block.getValue());
    Block &body = block.getBody().front();
    unsigned numArgs = static_cast<unsigned>(block.getNumArgs());
    llvm::BitVector &own =
        dependent.try_emplace(site.block.getValue(), llvm::BitVector(numArgs)).first->second;
    bool didDepend = own.any();
    // Of the blocks of an operator over a list any argument may be any of what it takes.
    bool isRecord = site.role.empty();
    unsigned tensors = 0;
    for (BlockArgument argument : body.getArguments().take_front(numArgs)) {
      if (!mayHoldTensors(argument.getType()))
        continue;
      bool depends = isRecord ? arguments_[number][tensors].anyCommon(carries)
                              : llvm::any_of(arguments_[number], [&](const auto &makers) {
                                  return makers.anyCommon(carries);
                                });
      ++tensors;
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (depends && type && isa<FloatType>(type.getElementType()))
        own.set(argument.getArgNumber());
    }
    if (own.any() && !didDepend)
      llvm::append_range(work, sitesOf[site.block]);
    bool depends = own.any() || llvm::any_of(site.weights.getAsRange<FlatSymbolRefAttr>(),
                                             [&](auto param) { return isTrainable(param); });
    if (carries[number] || !depends)
      continue;
    carries.set(number);
    llvm::append_range(work, users[number]);
  }
  return dependent;
}

} // namespace sheaf::passes
