//===- Needs.cpp - Which values of a Program something takes --------------===//

#include "compiler/passes/Needs.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Guards.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// A check of the program, or one that stands for what it guards.
std::optional<int64_t> guardOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(ir::kGuardAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

/// Whether it does something whoever takes its results. An index, a quotient, lists of unequal
/// length fail as what they give; a read waits for what is taken.
bool happens(Operation *op) {
  if (isa<ir::CheckOp>(op))
    return !guardOf(op);
  return !isa<ir::ListGetOp, ir::ListSliceOp, ir::ZipOp, ir::DivOp, ir::RemOp, ir::ReadOp,
              func::CallOp>(op) &&
         !op->hasTrait<OpTrait::IsTerminator>() && op->getNumRegions() == 0 &&
         !isMemoryEffectFree(op);
}

Value elementArgument(Operation *loop) {
  return loop->getRegion(0).getArgument(carriesState(loop) ? 1 : 0);
}

Needs::Parts operator|(Needs::Parts a, const Needs::Parts &b) { return a |= b; }

} // namespace

Needs::Needs(ModuleOp module, std::function<bool(Type)> canBeLeftOut)
    : symbols_(module), calls_(module), canBeLeftOut_(std::move(canBeLeftOut)) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func.walk([](Operation *op) {
              return happens(op) ? WalkResult::interrupt() : WalkResult::advance();
            })
            .wasInterrupted())
      mustRun_.insert(func);
  calls_.addCallers(mustRun_);
  for (auto [rank, func] : llvm::enumerate(calls_.bottomUp()))
    ranks_[func] = static_cast<unsigned>(rank);
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func.isPublic() || func.isExternal())
      continue;
    std::vector<Parts> results;
    for (Type type : func.getResultTypes()) {
      takeAll(type);
      results.push_back(all(type));
    }
    roots_.push_back(&instanceOf(func, results));
  }
  while (!queue_.empty()) {
    Instance &next = *queue_.begin()->second;
    queue_.erase(queue_.begin());
    analyse(next);
  }
}

std::vector<Needs::Instance *> Needs::instances() const {
  llvm::SetVector<Instance *> reached(roots_.begin(), roots_.end());
  for (size_t i = 0; i < reached.size(); ++i) {
    Instance &instance = *reached[i];
    instance.func.walk([&](func::CallOp call) {
      if (isLive(instance, call))
        reached.insert(&const_cast<Needs *>(this)->callee(call, instance));
    });
  }
  return {reached.begin(), reached.end()};
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

unsigned Needs::size(Type type) const {
  if (!isa<TupleType, ir::ListType>(type))
    return 1;
  if (auto it = sizes_.find(type); it != sizes_.end())
    return it->second;
  unsigned size = 0;
  if (auto list = dyn_cast<ir::ListType>(type))
    size = 1 + this->size(list.getElement());
  else
    for (Type field : cast<TupleType>(type).getTypes())
      size += this->size(field);
  return sizes_[type] = size;
}

Needs::Parts Needs::slice(const Parts &parts, unsigned begin, unsigned size) {
  Parts result(size);
  for (unsigned i = 0; i < size; ++i)
    if (parts[begin + i])
      result.set(i);
  return result;
}

/// The length, and these parts of the elements.
Needs::Parts Needs::listOf(const Parts &element) const {
  Parts result(element.size() + 1);
  result.set(0);
  for (unsigned i : element.set_bits())
    result.set(i + 1);
  return result;
}

Needs::Parts Needs::needOf(const Instance &instance, Value value) const {
  auto it = instance.values.find(value);
  return it == instance.values.end() ? none(value.getType()) : it->second;
}

Needs::Field &Needs::fieldOf(Type data, int64_t ctor, unsigned field) {
  return fields_[{data.getAsOpaquePointer(), ctor, field}];
}

/// All that a value of the type holds.
void Needs::takeAll(Type type) {
  SmallVector<Type> work{type};
  while (!work.empty()) {
    Type next = work.pop_back_val();
    if (!whole_.insert(next).second)
      continue;
    if (auto list = dyn_cast<ir::ListType>(next)) {
      work.push_back(list.getElement());
    } else if (auto tuple = dyn_cast<TupleType>(next)) {
      llvm::append_range(work, tuple.getTypes());
    } else if (auto data = dyn_cast<ir::DataType>(next)) {
      auto declaration = symbols_.lookup<ir::DataOp>(data.getName().getAttr());
      for (auto [number, ctor] : llvm::enumerate(declaration.getCtors().getAsRange<ir::CtorAttr>()))
        for (auto [i, field] : llvm::enumerate(ctor.getFieldTypes().getAsValueRange<TypeAttr>())) {
          Field &have = fieldOf(data, static_cast<int64_t>(number), static_cast<unsigned>(i));
          have.parts = all(field);
          queueAll(have.users.getArrayRef());
          work.push_back(field);
        }
    }
  }
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Needs::Instance &Needs::instanceOf(func::FuncOp func, const std::vector<Parts> &results) {
  std::vector<std::vector<bool>> key;
  if (!calls_.isRecursive(func))
    for (const Parts &parts : results) {
      key.emplace_back();
      for (unsigned i = 0; i < parts.size(); ++i)
        key.back().push_back(parts[i]);
    }
  std::unique_ptr<Instance> &instance = instances_[{func, key}];
  if (!instance) {
    instance = std::make_unique<Instance>();
    instance->func = func;
    instance->turn = {ranks_.lookup(func), static_cast<unsigned>(instances_.size())};
    instance->results = results;
    for (Type type : func.getArgumentTypes())
      instance->arguments.push_back(none(type));
    func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      instance->places[op] = static_cast<unsigned>(instance->order.size());
      instance->order.push_back(op);
      if (isa<ir::CheckOp>(op))
        if (auto guard = guardOf(op))
          instance->checks[*guard].push_back(op);
      queue(*instance, op);
    });
  }
  for (auto [have, more] : llvm::zip(instance->results, results))
    if (more.test(have)) {
      have |= more;
      queue(*instance, func.front().getTerminator());
    }
  return *instance;
}

Needs::Instance &Needs::callee(func::CallOp call, const Instance &instance) {
  std::vector<Parts> results;
  for (Value result : call.getResults())
    results.push_back(needOf(instance, result));
  return instanceOf(symbols_.lookup<func::FuncOp>(call.getCallee()), results);
}

void Needs::queue(Instance &instance, Operation *op) {
  instance.pending.insert(instance.places.lookup(op));
  queue_.emplace(instance.turn, &instance);
}

void Needs::queueAll(ArrayRef<std::pair<Instance *, Operation *>> users) {
  for (auto [instance, op] : users)
    queue(*instance, op);
}

/// What the regions of an operation yield is taken as its results and what it carries are.
void Needs::queueWithYields(Instance &instance, Operation *op) {
  queue(instance, op);
  for (Region &region : op->getRegions())
    if (!region.empty())
      queue(instance, region.front().getTerminator());
}

/// From the end, where what takes stands.
void Needs::analyse(Instance &instance) {
  while (!instance.pending.empty()) {
    auto last = std::prev(instance.pending.end());
    Operation *op = instance.order[*last];
    instance.pending.erase(last);
    visit(instance, op);
  }
}

void Needs::visit(Instance &instance, Operation *op) {
  bool isLive = this->isLive(instance, op);
  llvm::SmallDenseSet<unsigned> taken;
  forEachTaken(instance, op, [&](OpOperand &operand, Parts parts) {
    if (parts.any())
      taken.insert(operand.getOperandNumber());
    add(instance, operand.get(), parts);
  });
  if (!isLive)
    return;
  for (OpOperand &operand : op->getOpOperands())
    if (!taken.contains(operand.getOperandNumber()) && !canBeLeftOut_(operand.get().getType()))
      add(instance, operand.get(), all(operand.get().getType()));
  if (auto guard = guardOf(op);
      guard && !isa<ir::CheckOp>(op) && instance.guards.insert(*guard).second)
    for (Operation *check : instance.checks.lookup(*guard))
      queue(instance, check);
  auto call = dyn_cast<func::CallOp>(op);
  if (isa<ir::CheckOp>(op) || happens(op) ||
      (call && mustRun_.contains(symbols_.lookup(call.getCallee()))))
    for (Operation *around = op->getParentOp(); around != instance.func;
         around = around->getParentOp())
      if (instance.effects.insert(around).second)
        queueWithYields(instance, around);
}

bool Needs::isLive(const Instance &instance, Operation *op) const {
  if (op->hasTrait<OpTrait::IsTerminator>() || happens(op) || instance.effects.contains(op))
    return true;
  if (isa<ir::CheckOp>(op))
    return instance.guards.contains(*guardOf(op));
  if (auto call = dyn_cast<func::CallOp>(op);
      call && mustRun_.contains(symbols_.lookup(call.getCallee())))
    return true;
  return llvm::any_of(op->getResults(), [&](Value result) {
    auto it = instance.values.find(result);
    return it != instance.values.end() && it->second.any();
  });
}

void Needs::add(Instance &instance, Value value, const Parts &parts) {
  if (parts.none())
    return;
  Parts &have = instance.values.try_emplace(value, none(value.getType())).first->second;
  if (!parts.test(have))
    return;
  have |= parts;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &instance.func.front())
    return queueWithYields(instance,
                           argument ? argument.getOwner()->getParentOp() : value.getDefiningOp());
  instance.arguments[argument.getArgNumber()] = have;
  queueAll(instance.callers.getArrayRef());
}

bool Needs::takes(Instance &instance, OpOperand &operand) {
  bool result = false;
  forEachTaken(instance, operand.getOwner(), [&](OpOperand &taken, const Parts &parts) {
    result |= &taken == &operand && parts.any();
  });
  return result;
}

//===----------------------------------------------------------------------===//
// What operations take
//===----------------------------------------------------------------------===//

void Needs::yieldTakes(Instance &instance, Operation *yield, Take take) {
  Operation *parent = yield->getParentOp();
  auto ofResult = [&] { return needOf(instance, parent->getResult(0)); };
  for (OpOperand &operand : yield->getOpOperands()) {
    if (isa<scf::IfOp, ir::MatchOp>(parent)) {
      take(operand, needOf(instance, parent->getResult(operand.getOperandNumber())));
    } else if (isa<ir::MapOp>(parent)) {
      take(operand, elementOf(ofResult()));
    } else if (isa<ir::FilterOp>(parent)) {
      if (isLive(instance, parent))
        take(operand, all(operand.get().getType()));
    } else if (carriesState(parent)) {
      take(operand, (isa<ir::FoldOp>(parent) ? ofResult() : elementOf(ofResult())) |
                        needOf(instance, parent->getRegion(0).getArgument(0)));
    } else {
      takeAll(operand.get().getType());
      take(operand, all(operand.get().getType()));
    }
  }
}

void Needs::forEachTaken(Instance &instance, Operation *op, Take take) {
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    for (OpOperand &operand : ret->getOpOperands())
      take(operand, instance.results[operand.getOperandNumber()]);
    return;
  }
  if (op->hasTrait<OpTrait::IsTerminator>())
    return yieldTakes(instance, op, take);
  if (!isLive(instance, op))
    return;
  auto operands = op->getOpOperands();
  auto need = [&](Value value) { return needOf(instance, value); };
  auto takeWhole = [&](OpOperand &operand) {
    takeAll(operand.get().getType());
    take(operand, all(operand.get().getType()));
  };
  auto takeTail = [&](unsigned first) {
    for (OpOperand &operand : operands.drop_front(first))
      takeWhole(operand);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](func::CallOp call) {
        Instance &target = callee(call, instance);
        target.callers.insert({&instance, call});
        for (auto [operand, parts] : llvm::zip(operands, target.arguments))
          take(operand, parts);
      })
      .Case([&](ir::TupleOp tuple) {
        Parts parts = need(tuple.getResult());
        unsigned begin = 0;
        for (OpOperand &field : operands) {
          unsigned count = size(field.get().getType());
          take(field, slice(parts, begin, count));
          begin += count;
        }
      })
      .Case([&](ir::GetOp get) {
        auto tuple = cast<TupleType>(get.getTuple().getType());
        unsigned begin = 0;
        for (Type field : tuple.getTypes().take_front(get.getIndex()))
          begin += size(field);
        Parts parts = none(tuple), ofField = need(get.getResult());
        for (unsigned i : ofField.set_bits())
          parts.set(begin + i);
        take(operands[0], parts);
      })
      .Case([&](ir::ConstructOp construct) {
        for (OpOperand &field : operands) {
          Field &need = fieldOf(construct.getType(), static_cast<int64_t>(construct.getCtor()),
                                field.getOperandNumber());
          if (need.parts.empty())
            need.parts = none(field.get().getType());
          need.users.insert({&instance, construct});
          take(field, need.parts);
        }
      })
      .Case([&](ir::MatchOp match) {
        take(operands[0], all(match.getScrutinee().getType()));
        for (auto [ctor, arm] : llvm::zip(match.getCases(), match.getArms()))
          for (BlockArgument field : arm.getArguments()) {
            Parts parts = need(field);
            Field &have = fieldOf(match.getScrutinee().getType(), ctor, field.getArgNumber());
            if (have.parts.empty())
              have.parts = none(field.getType());
            if (!parts.test(have.parts))
              continue;
            have.parts |= parts;
            queueAll(have.users.getArrayRef());
          }
      })
      .Case([&](scf::IfOp) { takeTail(0); })
      .Case<ir::MapOp, ir::FilterOp>([&](auto loop) {
        Parts element = need(elementArgument(loop));
        if (isa<ir::FilterOp>(loop))
          element |= elementOf(need(loop.getResult()));
        take(operands[0], listOf(element));
      })
      .Case<ir::FoldOp, ir::ScanOp>([&](auto loop) {
        Parts carried = need(loop.getBody().getArgument(0));
        Parts result = need(loop.getResult());
        carried |= isa<ir::FoldOp>(loop) ? result : elementOf(result);
        take(operands[0], carried);
        take(operands[1], listOf(need(elementArgument(loop))));
      })
      .Case([&](ir::ListMakeOp list) {
        for (OpOperand &operand : operands)
          take(operand, elementOf(need(list.getResult())));
      })
      .Case([&](ir::ConsOp cons) {
        take(operands[0], elementOf(need(cons.getResult())));
        take(operands[1], listOf(elementOf(need(cons.getResult()))));
      })
      .Case([&](ir::AppendOp append) {
        take(operands[0], listOf(elementOf(need(append.getResult()))));
        take(operands[1], elementOf(need(append.getResult())));
      })
      .Case<ir::ListConcatOp, ir::ReverseOp>([&](auto op) {
        for (OpOperand &operand : operands)
          take(operand, listOf(elementOf(need(op.getResult()))));
      })
      .Case([&](ir::LenOp len) {
        take(operands[0], listOf(elementOf(none(len.getList().getType()))));
      })
      .Case([&](ir::ListGetOp get) {
        take(operands[0], listOf(need(get.getResult())));
        takeTail(1);
      })
      .Case([&](ir::ListSliceOp cut) {
        take(operands[0], listOf(elementOf(need(cut.getResult()))));
        takeTail(1);
      })
      .Case([&](ir::ZipOp zip) {
        Parts parts = elementOf(need(zip.getResult()));
        unsigned begin = 0;
        for (OpOperand &list : operands) {
          unsigned count = size(list.get().getType()) - 1;
          take(list, listOf(slice(parts, begin, count)));
          begin += count;
        }
      })
      .Default([&](Operation *) { takeTail(0); });
}

} // namespace sheaf::passes
