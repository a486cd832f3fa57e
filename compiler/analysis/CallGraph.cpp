//===- CallGraph.cpp ------------------------------------------------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/ir/Program.h"

#include <algorithm>

using namespace mlir;

namespace sheaf::passes {

CallGraph::CallGraph(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto func : module.getOps<func::FuncOp>()) {
    functions_.push_back(func);
    auto &callees = callees_[func];
    llvm::DenseSet<Operation *> seen;
    func.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (callee && seen.insert(callee).second)
        callees.push_back(callee);
    });
  }
  findComponents();
}

/// Tarjan's algorithm with its stack on the heap: call chains may be as long as the program.
void CallGraph::addCallers(llvm::DenseSet<Operation *> &functions) const {
  // Callees come first; a cycle needs as many rounds as it is long at worst.
  for (bool changed = true; changed;) {
    changed = false;
    for (func::FuncOp func : order_)
      for (func::FuncOp callee : callees(func))
        if (functions.contains(callee))
          changed |= functions.insert(func).second;
  }
}

void CallGraph::findComponents() {
  struct Frame {
    func::FuncOp func;
    size_t next;
  };
  llvm::DenseMap<Operation *, unsigned> index, low;
  llvm::DenseSet<Operation *> onStack;
  std::vector<func::FuncOp> stack;
  unsigned counter = 0, components = 0;

  for (func::FuncOp root : functions_) {
    if (index.contains(root))
      continue;
    std::vector<Frame> frames;
    auto enter = [&](func::FuncOp func) {
      index[func] = low[func] = counter++;
      stack.push_back(func);
      onStack.insert(func);
      frames.push_back({func, 0});
    };
    enter(root);
    while (!frames.empty()) {
      Frame &frame = frames.back();
      func::FuncOp func = frame.func;
      const auto &callees = callees_[func];
      if (frame.next < callees.size()) {
        func::FuncOp callee = callees[frame.next++];
        if (!index.contains(callee))
          enter(callee);
        else if (onStack.contains(callee))
          low[func] = std::min(low[func], index[callee]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty())
        low[frames.back().func] = std::min(low[frames.back().func], low[func]);
      if (low[func] != index[func])
        continue;
      size_t begin = stack.size();
      while (stack[--begin] != func) {
      }
      bool cyclic = stack.size() - begin > 1 || llvm::is_contained(callees, func);
      for (size_t i = begin; i < stack.size(); ++i) {
        component_[stack[i]] = components;
        onStack.erase(stack[i]);
        order_.push_back(stack[i]);
        if (cyclic)
          recursive_.insert(stack[i]);
      }
      stack.resize(begin);
      ++components;
    }
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
    if (!func.isPrivate() && reached.insert(func).second)
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
