//===- CallGraph.cpp ------------------------------------------------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/ir/Components.h"
#include "compiler/ir/Program.h"

using namespace mlir;

namespace sheaf::passes {

CallGraph::CallGraph(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::append_range(functions_, module.getOps<func::FuncOp>());
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto [number, func] : llvm::enumerate(functions_))
    numbers[func] = static_cast<unsigned>(number);
  std::vector<std::vector<unsigned>> next(functions_.size());
  for (auto [number, func] : llvm::enumerate(functions_)) {
    auto &callees = callees_[func];
    llvm::DenseSet<Operation *> seen;
    func.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || !seen.insert(callee).second)
        return;
      callees.push_back(callee);
      next[number].push_back(numbers.lookup(callee));
    });
    for (func::FuncOp callee : callees)
      callers_[callee].push_back(func);
  }
  Components components = findComponents(next);
  for (unsigned number : components.order) {
    func::FuncOp func = functions_[number];
    order_.push_back(func);
    component_[func] = components.of[number];
    if (components.cyclic[number])
      recursive_.insert(func);
  }
}

void CallGraph::addCallers(llvm::DenseSet<Operation *> &functions) const {
  SmallVector<Operation *> work(functions.begin(), functions.end());
  while (!work.empty()) {
    auto callers = callers_.find(work.pop_back_val());
    if (callers == callers_.end())
      continue;
    for (func::FuncOp caller : callers->second)
      if (functions.insert(caller).second)
        work.push_back(caller);
  }
}

llvm::DenseSet<Operation *> CallGraph::readers() const {
  llvm::DenseSet<Operation *> readers;
  for (func::FuncOp func : functions_)
    func.walk([&](ir::ReadOp) { readers.insert(func); });
  addCallers(readers);
  return readers;
}

llvm::DenseSet<Operation *> CallGraph::emitters() const {
  llvm::DenseSet<Operation *> emitters;
  for (func::FuncOp func : functions_)
    func.walk([&](ir::EmitOp) { emitters.insert(func); });
  addCallers(emitters);
  return emitters;
}

unsigned dropUnreachable(ModuleOp module) {
  CallGraph graph(module);
  std::vector<func::FuncOp> work;
  llvm::DenseSet<Operation *> reached;
  for (func::FuncOp func : graph.bottomUp())
    if ((!func.isPrivate() || func->hasAttr(ir::kFoldedAttr)) && reached.insert(func).second)
      work.push_back(func);
  while (!work.empty()) {
    func::FuncOp func = work.back();
    work.pop_back();
    for (func::FuncOp callee : graph.callees(func))
      if (reached.insert(callee).second)
        work.push_back(callee);
  }
  unsigned dropped = 0;
  for (func::FuncOp func : graph.bottomUp())
    if (!reached.contains(func)) {
      func.erase();
      ++dropped;
    }
  return dropped;
}

} // namespace sheaf::passes
