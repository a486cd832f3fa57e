#include "compiler/host/Demand.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sheaf::host {
namespace {

class Demand {
public:
  Demand(ModuleOp program, const KernelInstances &instances)
      : instances_(instances), symbols_(program), demanded_(instances.all().size()) {
    program.walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        calls_[call.getCallee()].push_back(call);
      else if (auto record = dyn_cast<ir::RecordOp>(op))
        records_[instances.of(record)].push_back(record);
      else if (auto construct = dyn_cast<ir::ConstructOp>(op))
        constructs_[construct.getType()].push_back(construct);
      else if (auto data = dyn_cast<ir::DataOp>(op))
        dataTypes_.push_back(data);
    });
    program.walk([&](ir::ReadOp read) { demand(read.getTensor()); });
    while (!work_.empty())
      follow(work_.pop_back_val());
  }

  std::vector<bool> take() { return std::move(demanded_); }

private:
  /// Ints, floats, bools and tokens hold no tensors.
  static bool mayHoldTensors(Type type) {
    return isa<RankedTensorType, TupleType, ir::ListType, ir::DataType>(type);
  }

  void demand(Value value) {
    if (mayHoldTensors(value.getType()) && seen_.insert(value).second)
      work_.push_back(value);
  }
  void demandAll(ValueRange values) {
    llvm::for_each(values, [&](Value v) { demand(v); });
  }

  /// The tensors inside of values of this type, wherever one was made.
  void demandInside(Type type) {
    if (auto tuple = dyn_cast<TupleType>(type)) {
      llvm::for_each(tuple.getTypes(), [&](Type field) { demandInside(field); });
      return;
    }
    if (auto list = dyn_cast<ir::ListType>(type))
      return demandInside(list.getElement());
    auto data = dyn_cast<ir::DataType>(type);
    if (!data || !seenTypes_.insert(data).second)
      return;
    for (ir::ConstructOp construct : constructs_.lookup(data))
      demandAll(construct.getFields());
    // A field's own type may be data that comes from elsewhere.
    for (ir::DataOp op : dataTypes_)
      if (op.getSymNameAttr() == data.getName().getAttr())
        for (auto ctor : op.getCtors().getAsRange<ir::CtorAttr>())
          for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
            demandInside(field);
  }

  void demandKernel(unsigned instance) {
    if (demanded_[instance])
      return;
    demanded_[instance] = true;
    for (ir::RecordOp record : records_.lookup(instance))
      demandAll(record.getArgs());
  }

  /// `value` is demanded: so is what it is made of.
  void follow(Value value) {
    demandInside(value.getType());
    if (auto argument = dyn_cast<BlockArgument>(value))
      return followArgument(argument);
    Operation *op = value.getDefiningOp();
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ir::RecordOp record) { demandKernel(instances_.of(record)); })
        .Case([&](func::CallOp call) {
          auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
          unsigned number = cast<OpResult>(value).getResultNumber();
          callee.walk([&](func::ReturnOp result) { demand(result.getOperand(number)); });
        })
        .Default([&](Operation *op) {
          for (StringRef name : {"sheaf.copy", "sheaf.arrange"})
            if (auto block = op->getAttrOfType<FlatSymbolRefAttr>(name))
              demandKernel(instances_.of(block));
          demandAll(op->getOperands());
          demandRegions(op);
        });
  }

  /// What the regions of an operation hand to it or to their next round.
  void demandRegions(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        demandAll(block.getTerminator()->getOperands());
  }

  void followArgument(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto func = dyn_cast<func::FuncOp>(parent)) {
      for (func::CallOp call : calls_.lookup(func.getName()))
        demand(call.getOperand(argument.getArgNumber()));
      return;
    }
    demandAll(parent->getOperands());
    if (!isa<ir::MatchOp, ir::MapOp, ir::FilterOp>(parent))
      demandRegions(parent);
  }

  const KernelInstances &instances_;
  SymbolTable symbols_;
  std::vector<bool> demanded_;
  llvm::StringMap<SmallVector<func::CallOp>> calls_;
  llvm::DenseMap<unsigned, SmallVector<ir::RecordOp>> records_;
  llvm::DenseMap<Type, SmallVector<ir::ConstructOp>> constructs_;
  SmallVector<ir::DataOp> dataTypes_;
  llvm::DenseSet<Value> seen_;
  llvm::DenseSet<Type> seenTypes_;
  SmallVector<Value> work_;
};

} // namespace

std::vector<bool> demandedKernels(ModuleOp program, const KernelInstances &instances) {
  return Demand(program, instances).take();
}

} // namespace sheaf::host
