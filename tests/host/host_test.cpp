//===- host_test.cpp - Host code against a runtime that writes down -------===//

#include "compiler/host/Host.h"
#include "compiler/kernels/plan/BlockShapes.h"
#include "compiler/model/ModelTypes.h"
#include "compiler/ops/Verify.h"
#include "compiler/passes/Pipeline.h"
#include "tests/host/mock_runtime.h"

#include "mlir/Parser/Parser.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace sheaf;
using namespace sheaf::tests;
using rt::ListObject;
using rt::Slot;
using rt::TensorHandle;

namespace {

/// A program in text, compiled; runs instances of it.
class Program {
public:
  Program(const std::string &text, const std::string &entry, bool optimise) {
    mlir::DialectRegistry registry;
    ops::registerDialects(registry);
    mlirContext_.appendDialectRegistry(registry);
    mlirContext_.loadAllAvailableDialects();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &mlirContext_, "test.mlir");
    if (!module_)
      throw std::runtime_error("the test's program does not parse");
    std::vector<passes::PassReport> reports;
    if (failed(passes::runPipeline(*module_, {entry, {}}, reports)))
      throw std::runtime_error("the test's program does not pass the pipeline");
    instances_ = std::make_unique<host::KernelInstances>(*module_);
    planBlocks();
    compile(entry, optimise);
  }

  int64_t steps = int64_t(1) << 40; ///< calls of recursive functions that a run may make

  std::vector<Slot> run(std::vector<Slot> args, size_t results) {
    std::vector<Slot> out(results + 1, -77);
    mock.records.clear();
    mock.failed = false;
    mock.context.stepsLeft = steps;
    mock.nextGranule = 1000;
    mock.wordsOf.clear();
    for (const auto &instance : instances_->all())
      mock.wordsOf.push_back(words(instance.block));
    if (setjmp(mock.out) == 0)
      entry_(&mock.context, args.data(), out.data());
    EXPECT_EQ(out.back(), -77) << "results were written beyond their slots";
    out.pop_back();
    return out;
  }

  std::string blockOf(const Record &record) const {
    ir::BlockOp block = instances_->all()[record.kernel].block;
    return block.getSymName().str();
  }
  uint32_t param(const std::string &name) const {
    for (const rt::ParamDesc &param : layout_.params)
      if (param.name == name)
        return param.id;
    return ~0u;
  }
  std::string message() const {
    std::string text = code_.messages.at(mock.message);
    for (auto [mark, value] : {std::pair("{0}", mock.a), std::pair("{1}", mock.b)})
      if (size_t at = text.find(mark); at != std::string::npos)
        text.replace(at, 3, std::to_string(value));
    return text;
  }

  Mock mock;

private:
  /// Buffers as the planner makes them when nothing needs a temporary: the results.
  void planBlocks() {
    for (auto block : module_->getOps<ir::BlockOp>()) {
      kernels::Kernel kernel;
      kernel.block = block;
      kernels::BlockShapes shapes(block);
      for (mlir::Value result : block.getBody().front().getTerminator()->getOperands()) {
        auto type = mlir::cast<mlir::RankedTensorType>(result.getType());
        kernel.results.push_back(
            {static_cast<ops::DType>(host::runtimeDType(type)), shapes.of(result)});
      }
      kernels_.push_back(std::move(kernel));
    }
  }

  static uint32_t words(ir::BlockOp block) {
    uint32_t n = 1;
    for (mlir::Value arg : block.getBody().front().getArguments().take_front(block.getNumArgs())) {
      auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(arg.getType());
      n += tensor ? 1 + tensor.getNumDynamicDims() : 2;
    }
    return n;
  }

  void compile(const std::string &entry, bool optimise) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("host", *context);
    layout_ = host::layoutParams(*module_);
    code_ = host::emitHost({*module_, entry, *instances_, kernels_, layout_.params}, *module);
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    module->setDataLayout(jit_->getDataLayout());
    module->setTargetTriple(jit_->getTargetTriple());
    if (optimise) {
      llvm::PassBuilder builder;
      llvm::LoopAnalysisManager loops;
      llvm::FunctionAnalysisManager functions;
      llvm::CGSCCAnalysisManager components;
      llvm::ModuleAnalysisManager modules;
      builder.registerModuleAnalyses(modules);
      builder.registerCGSCCAnalyses(components);
      builder.registerFunctionAnalyses(functions);
      builder.registerLoopAnalyses(loops);
      builder.crossRegisterProxies(loops, functions, components, modules);
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1).run(*module, modules);
    }
    llvm::orc::SymbolMap symbols;
    for (llvm::Function &function : *module)
      if (void *address = abiFunction(function.getName().str()))
        symbols[jit_->mangleAndIntern(function.getName())] = {
            llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    llvm::cantFail(jit_->getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols)));
    llvm::cantFail(
        jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    entry_ = llvm::cantFail(jit_->lookup(code_.entrySymbol)).toPtr<rt::EntryFn>();
  }

  mlir::MLIRContext mlirContext_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::unique_ptr<host::KernelInstances> instances_;
  std::vector<kernels::Kernel> kernels_;
  host::ParamLayout layout_;
  host::HostCode code_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  rt::EntryFn entry_ = nullptr;
};

/// Every test runs on plain and on optimised code.
class Host : public testing::TestWithParam<bool> {
protected:
  std::unique_ptr<Program> compile(const std::string &text, const std::string &entry = "main") {
    return std::make_unique<Program>(text, entry, GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Levels, Host, testing::Values(false, true),
                         [](const auto &info) { return info.param ? "Optimised" : "Plain"; });

Slot handle(uint32_t id, uint32_t depth = 0) { return TensorHandle{id, depth}.pack(); }
Slot bits(double value) { return std::bit_cast<Slot>(value); }

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

TEST_P(Host, DivisionNeverTraps) {
  auto p = compile(R"(
    func.func @main(%a: i64, %b: i64) -> (i64, i64) {
      %q = sheaf.div %a, %b
      %r = sheaf.rem %a, %b
      return %q, %r : i64, i64
    })");
  EXPECT_EQ(p->run({-7, 2}, 2), (std::vector<Slot>{-3, -1}));
  EXPECT_EQ(p->run({INT64_MIN, -1}, 2), (std::vector<Slot>{INT64_MIN, 0}));
  EXPECT_EQ(p->run({9, -1}, 2), (std::vector<Slot>{-9, 0}));
  EXPECT_FALSE(p->mock.failed);
  p->run({5, 0}, 2);
  EXPECT_TRUE(p->mock.failed);
  EXPECT_EQ(p->message(), "test.mlir:3: 5 is divided by zero");
}

TEST_P(Host, Conversions) {
  auto p = compile(R"(
    func.func @main(%i: i64, %f: f64, %b: i1, %t: !sheaf.token<"w">)
        -> (f64, i64, i64, i64, i1, i1, f64) {
      %0 = sheaf.convert %i : i64 to f64
      %1 = sheaf.convert %f : f64 to i64
      %2 = sheaf.convert %b : i1 to i64
      %3 = sheaf.convert %t : !sheaf.token<"w"> to i64
      %4 = sheaf.convert %i : i64 to i1
      %5 = sheaf.convert %f : f64 to i1
      %6 = sheaf.convert %b : i1 to f64
      return %0, %1, %2, %3, %4, %5, %6 : f64, i64, i64, i64, i1, i1, f64
    })");
  EXPECT_EQ(p->run({3, bits(-2.9), 1, 17}, 7),
            (std::vector<Slot>{bits(3.0), -2, 1, 17, 1, 1, bits(1.0)}));
  EXPECT_EQ(p->run({0, bits(1e300), 0, 0}, 7),
            (std::vector<Slot>{bits(0.0), INT64_MAX, 0, 0, 0, 1, bits(0.0)}));
  EXPECT_EQ(p->run({0, bits(NAN), 0, 0}, 7)[1], 0);
}

TEST_P(Host, FloatsAndChoices) {
  auto p = compile(R"(
    func.func @main(%a: f64, %b: f64) -> (f64, f64, i1) {
      %less = arith.cmpf olt, %a, %b : f64
      %r = scf.if %less -> (f64) {
        %s = arith.addf %a, %b : f64
        scf.yield %s : f64
      } else {
        %d = arith.divf %a, %b : f64
        scf.yield %d : f64
      }
      %m = arith.maximumf %a, %b : f64
      return %r, %m, %less : f64, f64, i1
    })");
  EXPECT_EQ(p->run({bits(1), bits(2)}, 3), (std::vector<Slot>{bits(3), bits(2), 1}));
  EXPECT_EQ(p->run({bits(9), bits(2)}, 3), (std::vector<Slot>{bits(4.5), bits(9), 0}));
}

TEST_P(Host, ChecksEndTheInstance) {
  auto p = compile(R"(
    func.func @main(%a: i64) -> i64 {
      %c0 = arith.constant 0 : i64
      %good = arith.cmpi sgt, %a, %c0 : i64
      sheaf.check %good, "a is not positive"
      return %a : i64
    })");
  EXPECT_EQ(p->run({4}, 1)[0], 4);
  EXPECT_FALSE(p->mock.failed);
  p->run({-4}, 1);
  EXPECT_TRUE(p->mock.failed);
  EXPECT_EQ(p->message(), "test.mlir:5: a is not positive");
}

//===----------------------------------------------------------------------===//
// Functions and data
//===----------------------------------------------------------------------===//

TEST_P(Host, TailCallsTakeNoStack) {
  auto p = compile(R"(
    func.func private @even(%n: i64, %x: f64) -> i1 {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %end = arith.cmpi eq, %n, %c0 : i64
      %r = scf.if %end -> (i1) {
        %t = arith.constant true
        scf.yield %t : i1
      } else {
        %m = arith.subi %n, %c1 : i64
        %s = func.call @odd(%m) : (i64) -> i1
        scf.yield %s : i1
      }
      return %r : i1
    }
    func.func private @odd(%n: i64) -> i1 {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %f = arith.constant 0.0 : f64
      %end = arith.cmpi eq, %n, %c0 : i64
      %r = scf.if %end -> (i1) {
        %t = arith.constant false
        scf.yield %t : i1
      } else {
        %m = arith.subi %n, %c1 : i64
        %s = func.call @even(%m, %f) : (i64, f64) -> i1
        scf.yield %s : i1
      }
      return %r : i1
    }
    func.func @main(%n: i64) -> i1 {
      %f = arith.constant 0.0 : f64
      %r = func.call @even(%n, %f) : (i64, f64) -> i1
      return %r : i1
    })");
  EXPECT_EQ(p->run({20000001}, 1)[0], 0);
  EXPECT_EQ(p->run({20000000}, 1)[0], 1);
  // Every call counts, also those that take no stack.
  p->steps = 1001;
  EXPECT_EQ(p->run({999}, 1)[0], 0);
  EXPECT_FALSE(p->mock.failed);
  p->run({1001}, 1);
  EXPECT_NE(p->message().find("no end in sight"), std::string::npos);
}

TEST_P(Host, TailCallsWithManyResults) {
  // Results that do not fit registers go through memory that tail calls hand on.
  auto p = compile(R"(
    func.func private @count(%n: i64, %a: i64, %b: f64, %c: i1) -> tuple<i64, tuple<f64, i1>, i64> {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %one = arith.constant 1.0 : f64
      %t = arith.constant true
      %end = arith.cmpi eq, %n, %c0 : i64
      %r = scf.if %end -> (tuple<i64, tuple<f64, i1>, i64>) {
        %i = sheaf.tuple(%b, %c) : (f64, i1) -> tuple<f64, i1>
        %o = sheaf.tuple(%a, %i, %n) : (i64, tuple<f64, i1>, i64) -> tuple<i64, tuple<f64, i1>, i64>
        scf.yield %o : tuple<i64, tuple<f64, i1>, i64>
      } else {
        %m = arith.subi %n, %c1 : i64
        %x = arith.addi %a, %n : i64
        %y = arith.addf %b, %one : f64
        %z = arith.xori %c, %t : i1
        %s = func.call @count(%m, %x, %y, %z) : (i64, i64, f64, i1) -> tuple<i64, tuple<f64, i1>, i64>
        scf.yield %s : tuple<i64, tuple<f64, i1>, i64>
      }
      return %r : tuple<i64, tuple<f64, i1>, i64>
    }
    func.func @main(%n: i64) -> (f64, tuple<i64, tuple<f64, i1>, i64>) {
      %c0 = arith.constant 0 : i64
      %f = arith.constant 0.5 : f64
      %b = arith.constant false
      %r = func.call @count(%n, %c0, %f, %b) : (i64, i64, f64, i1) -> tuple<i64, tuple<f64, i1>, i64>
      %i = sheaf.get %r[1] : (tuple<i64, tuple<f64, i1>, i64>) -> tuple<f64, i1>
      %y = sheaf.get %i[0] : (tuple<f64, i1>) -> f64
      return %y, %r : f64, tuple<i64, tuple<f64, i1>, i64>
    })");
  EXPECT_EQ(p->run({3000001}, 5),
            (std::vector<Slot>{bits(3000001.5), 3000001ll * 3000002 / 2, bits(3000001.5), 1, 0}));
}

const char *const kChain = R"(
    sheaf.data @Chain [#sheaf.ctor<"End", [], []>,
                       #sheaf.ctor<"Link", ["x", "f", "rest"], [i64, f64, !sheaf.data<@Chain>]>]
    func.func private @build(%n: i64, %acc: !sheaf.data<@Chain>) -> !sheaf.data<@Chain> {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %end = arith.cmpi eq, %n, %c0 : i64
      %r = scf.if %end -> (!sheaf.data<@Chain>) {
        scf.yield %acc : !sheaf.data<@Chain>
      } else {
        %f = sheaf.convert %n : i64 to f64
        %l = sheaf.construct 1(%n, %f, %acc) : (i64, f64, !sheaf.data<@Chain>) -> !sheaf.data<@Chain>
        %m = arith.subi %n, %c1 : i64
        %s = func.call @build(%m, %l) : (i64, !sheaf.data<@Chain>) -> !sheaf.data<@Chain>
        scf.yield %s : !sheaf.data<@Chain>
      }
      return %r : !sheaf.data<@Chain>
    }
    func.func private @sum(%c: !sheaf.data<@Chain>) -> (i64, f64) {
      %r:2 = sheaf.match %c [1] : (!sheaf.data<@Chain>) -> (i64, f64) {
      ^bb0(%x: i64, %f: f64, %rest: !sheaf.data<@Chain>):
        %s:2 = func.call @sum(%rest) : (!sheaf.data<@Chain>) -> (i64, f64)
        %i = arith.addi %x, %s#0 : i64
        %g = arith.addf %f, %s#1 : f64
        sheaf.yield %i, %g : i64, f64
      }, {
        %c0 = arith.constant 0 : i64
        %f0 = arith.constant 0.0 : f64
        sheaf.yield %c0, %f0 : i64, f64
      }
      return %r#0, %r#1 : i64, f64
    }
    func.func @main(%n: i64) -> (i64, f64) {
      %e = sheaf.construct 0() : () -> !sheaf.data<@Chain>
      %c = func.call @build(%n, %e) : (i64, !sheaf.data<@Chain>) -> !sheaf.data<@Chain>
      %s:2 = func.call @sum(%c) : (!sheaf.data<@Chain>) -> (i64, f64)
      return %s#0, %s#1 : i64, f64
    })";

TEST_P(Host, DataAndRecursion) {
  auto p = compile(kChain);
  EXPECT_EQ(p->run({1000}, 2), (std::vector<Slot>{500500, bits(500500)}));
}

TEST_P(Host, DeepRecursionIsAnError) {
  auto p = compile(kChain);
  // The address of a local would not do: the address sanitizer may put locals on the heap.
  p->mock.context.stackTaken = static_cast<uint8_t *>(__builtin_frame_address(0)) - (64 << 10);
  p->run({100000}, 2);
  EXPECT_NE(p->message().find("the recursion is too deep"), std::string::npos);
  p->run({10}, 2);
  EXPECT_FALSE(p->mock.failed);
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

std::vector<Slot> elements(Slot list) {
  auto *object = reinterpret_cast<ListObject *>(list);
  return {object->elements, object->elements + object->size * object->elementSlots};
}

TEST_P(Host, Loops) {
  auto p = compile(R"(
    func.func @main(%n: i64) -> (!sheaf.list<i64>, !sheaf.list<i64>, !sheaf.list<tuple<i64, i64>>, f64) {
      %c0 = arith.constant 0 : i64
      %c2 = arith.constant 2 : i64
      %xs = sheaf.range %c0, %n : !sheaf.list<i64>
      %even = sheaf.filter %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
      ^bb0(%x: i64):
        %r = sheaf.rem %x, %c2
        %e = arith.cmpi eq, %r, %c0 : i64
        sheaf.yield %e : i1
      }
      %sums = sheaf.scan %c0, %even : (i64, !sheaf.list<i64>) -> !sheaf.list<i64> {
      ^bb0(%acc: i64, %x: i64):
        %s = arith.addi %acc, %x : i64
        sheaf.yield %s : i64
      }
      %pairs = sheaf.zip(%even, %sums) : (!sheaf.list<i64>, !sheaf.list<i64>) -> !sheaf.list<tuple<i64, i64>>
      %back = sheaf.reverse %pairs : !sheaf.list<tuple<i64, i64>>
      %halves = sheaf.map %back : (!sheaf.list<tuple<i64, i64>>) -> !sheaf.list<f64> {
      ^bb0(%p: tuple<i64, i64>):
        %a = sheaf.get %p[1] : (tuple<i64, i64>) -> i64
        %f = sheaf.convert %a : i64 to f64
        %h = arith.constant 0.5 : f64
        %m = arith.mulf %f, %h : f64
        sheaf.yield %m : f64
      }
      %f0 = arith.constant 0.0 : f64
      %t = sheaf.fold %f0, %halves : (f64, !sheaf.list<f64>) -> f64 {
      ^bb0(%acc: f64, %x: f64):
        %s = arith.subf %x, %acc : f64
        sheaf.yield %s : f64
      }
      return %even, %sums, %back, %t : !sheaf.list<i64>, !sheaf.list<i64>, !sheaf.list<tuple<i64, i64>>, f64
    })");
  auto out = p->run({7}, 4);
  EXPECT_EQ(elements(out[0]), (std::vector<Slot>{0, 2, 4, 6}));
  EXPECT_EQ(elements(out[1]), (std::vector<Slot>{0, 2, 6, 12}));
  EXPECT_EQ(elements(out[2]), (std::vector<Slot>{6, 12, 4, 6, 2, 2, 0, 0}));
  EXPECT_EQ(out[3], bits(-(1 - (3 - (6 - 0.0)))));
  EXPECT_EQ(elements(p->run({-3}, 4)[0]), std::vector<Slot>());
}

TEST_P(Host, ListsGrowAndAreCut) {
  auto p = compile(R"(
    func.func @main(%xs: !sheaf.list<i64>, %lo: i64, %hi: i64) -> (!sheaf.list<i64>, i64, i64) {
      %c7 = arith.constant 7 : i64
      %c8 = arith.constant 8 : i64
      %a = sheaf.cons %c7, %xs : i64, !sheaf.list<i64>
      %b = sheaf.append %a, %c8 : !sheaf.list<i64>, i64
      %l = sheaf.list(%c8, %c7) : (i64, i64) -> !sheaf.list<i64>
      %c = sheaf.list_concat %b, %l : !sheaf.list<i64>
      %n = sheaf.len %c : !sheaf.list<i64>
      %s = sheaf.list_slice %c[%lo, %hi] : !sheaf.list<i64>
      %x = sheaf.list_get %c[%lo] : (!sheaf.list<i64>) -> i64
      return %s, %n, %x : !sheaf.list<i64>, i64, i64
    })");
  ListObject *list = p->mock.makeList(1, 2);
  list->elements[0] = 1;
  list->elements[1] = 2;
  auto in = reinterpret_cast<Slot>(list);
  auto out = p->run({in, 0, 6}, 3);
  EXPECT_EQ(elements(out[0]), (std::vector<Slot>{7, 1, 2, 8, 8, 7}));
  EXPECT_EQ(out[1], 6);
  EXPECT_EQ(out[2], 7);
  EXPECT_EQ(elements(p->run({in, 2, 3}, 3)[0]), (std::vector<Slot>{2}));
  p->run({in, 2, 7}, 3);
  EXPECT_EQ(p->message(), "test.mlir:10: the end 7 of a slice is out of range for a list of 6");
  p->run({in, 4, 3}, 3);
  EXPECT_EQ(p->message(), "test.mlir:10: a slice from 4 to 3 is out of range");
  p->run({in, -1, 3}, 3);
  EXPECT_EQ(p->message(), "test.mlir:10: a slice from -1 to 3 is out of range");
  p->run({in, 6, 6}, 3);
  EXPECT_EQ(p->message(), "test.mlir:11: index 6 is out of range for a list of 6");
}

TEST_P(Host, UnequalListsAreNotZipped) {
  auto p = compile(R"(
    func.func @main(%n: i64, %m: i64) -> !sheaf.list<tuple<i64, i64>> {
      %c0 = arith.constant 0 : i64
      %a = sheaf.range %c0, %n : !sheaf.list<i64>
      %b = sheaf.range %c0, %m : !sheaf.list<i64>
      %z = sheaf.zip(%a, %b) : (!sheaf.list<i64>, !sheaf.list<i64>) -> !sheaf.list<tuple<i64, i64>>
      return %z : !sheaf.list<tuple<i64, i64>>
    })");
  p->run({2, 3}, 1);
  EXPECT_EQ(p->message(), "test.mlir:6: lists of 2 and 3 elements cannot be zipped");
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

const char *const kTree = R"(
    sheaf.data @Tree [#sheaf.ctor<"Leaf", ["word"], [!sheaf.token<"">]>,
                      #sheaf.ctor<"Node", ["l", "r"], [!sheaf.data<@Tree>, !sheaf.data<@Tree>]>]
    sheaf.param @table : tensor<50x20xf32> init("zeros", [])
    sheaf.param @w : tensor<20x20xf32> init("zeros", [])
    func.func private @encode(%t: !sheaf.data<@Tree>) -> tensor<20xf32> {
      %r = sheaf.match %t [0, 1] : (!sheaf.data<@Tree>) -> tensor<20xf32> {
      ^bb0(%word: !sheaf.token<"">):
        %e = sheaf.param_ref @table : tensor<50x20xf32>
        %x = sheaf.apply "embedding"(%e, %word) {} : (tensor<50x20xf32>, !sheaf.token<"">) -> tensor<20xf32>
        sheaf.yield %x : tensor<20xf32>
      }, {
      ^bb0(%l: !sheaf.data<@Tree>, %r: !sheaf.data<@Tree>):
        %a = func.call @encode(%l) : (!sheaf.data<@Tree>) -> tensor<20xf32>
        %b = func.call @encode(%r) : (!sheaf.data<@Tree>) -> tensor<20xf32>
        %s = sheaf.apply "add"(%a, %b) {} : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
        %w = sheaf.param_ref @w : tensor<20x20xf32>
        %p = sheaf.apply "matmul"(%s, %w) {} : (tensor<20xf32>, tensor<20x20xf32>) -> tensor<20xf32>
        sheaf.yield %p : tensor<20xf32>
      }
      return %r : tensor<20xf32>
    }
    func.func @main(%t: !sheaf.data<@Tree>) -> tensor<20xf32> {
      %r = func.call @encode(%t) : (!sheaf.data<@Tree>) -> tensor<20xf32>
      return %r : tensor<20xf32>
    })";

TEST_P(Host, TreesRecordByDepth) {
  auto p = compile(kTree);
  // Node(Leaf 3, Node(Leaf 4, Leaf 49))
  Slot leaf3[] = {0, 3}, leaf4[] = {0, 4}, leaf49[] = {0, 49};
  Slot inner[] = {1, reinterpret_cast<Slot>(leaf4), reinterpret_cast<Slot>(leaf49)};
  Slot outer[] = {1, reinterpret_cast<Slot>(leaf3), reinterpret_cast<Slot>(inner)};
  auto out = p->run({reinterpret_cast<Slot>(outer)}, 1);
  int32_t table = static_cast<int32_t>(p->param("table"));
  ASSERT_EQ(p->mock.records.size(), 2u);
  EXPECT_EQ(p->mock.records[0].depth, 0u);
  EXPECT_EQ(p->mock.records[0].granules, 2);
  EXPECT_EQ(p->mock.records[0].words, (std::vector<int32_t>{table + 2 * 4, table + 2 * 49, 1000}));
  EXPECT_EQ(p->mock.records[1].depth, 1u);
  EXPECT_EQ(p->mock.records[1].words, (std::vector<int32_t>{table + 2 * 3, 1000, 1002}));
  EXPECT_EQ(out[0], handle(1002, 2));

  Slot bad[] = {0, 50};
  p->run({reinterpret_cast<Slot>(bad)}, 1);
  EXPECT_TRUE(p->mock.failed);
  EXPECT_NE(p->message().find("out of range"), std::string::npos);
}

TEST_P(Host, PhasesAndGhostsMakeDepths) {
  auto p = compile(R"(
    func.func @main(%x: tensor<20xf32>, %n: i64) -> (tensor<20xf32>, tensor<20xf32>) {
      %zero = arith.constant 0 : i64
      %l = sheaf.range %zero, %n : !sheaf.list<i64>
      %f = sheaf.fold %x, %l : (tensor<20xf32>, !sheaf.list<i64>) -> tensor<20xf32> {
      ^bb0(%h: tensor<20xf32>, %i: i64):
        %t = sheaf.apply "tanh"(%h) {} : (tensor<20xf32>) -> tensor<20xf32>
        sheaf.yield %t : tensor<20xf32>
      }
      %e = sheaf.apply "exp"(%f) {} : (tensor<20xf32>) -> tensor<20xf32>
      %g = sheaf.ghost %x, 7 : tensor<20xf32>
      return %e, %g : tensor<20xf32>, tensor<20xf32>
    })");
  auto out = p->run({handle(500, 3), 2}, 2);
  ASSERT_EQ(p->mock.records.size(), 3u);
  EXPECT_EQ(p->mock.records[0].depth, 3u);
  EXPECT_EQ(p->mock.records[1].depth, 4u);
  // The loop is of any length: what follows begins a phase of its own.
  uint32_t second = 1u << rt::depthBits(2);
  EXPECT_EQ(p->mock.records[2].depth, second);
  EXPECT_EQ(out, (std::vector<Slot>{handle(1004, second + 1), handle(500, 10)}));
}

TEST_P(Host, ExtentsAndScalarsAreWords) {
  auto p = compile(R"(
    func.func @main(%x: tensor<?x20xf32>, %i: i64, %f: f64, %n: i64)
        -> (tensor<?x20xf32>, tensor<20xf32>, tensor<?xf32>) {
      %s = sheaf.apply "scalar"(%f) {} : (f64) -> tensor<f32>
      %y = sheaf.apply "mul"(%x, %s) {} : (tensor<?x20xf32>, tensor<f32>) -> tensor<?x20xf32>
      %r = sheaf.apply "index"(%x, %i) {} : (tensor<?x20xf32>, i64) -> tensor<20xf32>
      %z = sheaf.apply "zeros"(%n) {} : (i64) -> tensor<?xf32>
      %e = sheaf.apply "exp"(%z) {} : (tensor<?xf32>) -> tensor<?xf32>
      return %y, %r, %e : tensor<?x20xf32>, tensor<20xf32>, tensor<?xf32>
    })");
  auto out = p->run({handle(500, 3), 5, 2, bits(1.5), 33}, 5);
  ASSERT_FALSE(p->mock.failed) << p->message();
  ASSERT_EQ(p->mock.records.size(), 2u);
  const Record &scale = p->mock.records[0];
  EXPECT_EQ(scale.depth, 3u);
  EXPECT_EQ(scale.granules, 5 * 2);
  Slot factor = bits(1.5);
  EXPECT_EQ(scale.words, (std::vector<int32_t>{500, 5, static_cast<int32_t>(factor),
                                               static_cast<int32_t>(factor >> 32), 1000}));
  const Record &made = p->mock.records[1];
  EXPECT_EQ(made.depth, 0u);
  EXPECT_EQ(made.granules, 3);
  EXPECT_EQ(made.words, (std::vector<int32_t>{33, 0, 1010}));
  EXPECT_EQ(out,
            (std::vector<Slot>{handle(1000, 4), 5, handle(500 + 2 * 2, 3), handle(1010, 1), 33}));
  p->run({handle(500, 3), 5, 2, bits(1.5), -1}, 5);
  EXPECT_EQ(p->message(), "test.mlir:8: a tensor cannot have the extent -1");
}

TEST_P(Host, ListsOfTensorsAreStacked) {
  auto p = compile(R"(
    func.func @main(%xs: !sheaf.list<tensor<20xf32>>) -> tensor<?x20xf32> {
      %s = sheaf.apply "stack"(%xs) {axis = 0 : i64} : (!sheaf.list<tensor<20xf32>>) -> tensor<?x20xf32>
      return %s : tensor<?x20xf32>
    })");
  ListObject *list = p->mock.makeList(1, 3);
  list->elements[0] = handle(10, 2);
  list->elements[1] = handle(20, 5);
  list->elements[2] = handle(30, 0);
  auto out = p->run({reinterpret_cast<Slot>(list)}, 2);
  EXPECT_EQ(out, (std::vector<Slot>{handle(1000, 6), 3}));
  ASSERT_EQ(p->mock.records.size(), 3u);
  EXPECT_EQ(p->mock.records[0].granules, 6);
  EXPECT_EQ(p->mock.records[1].granules, 0);
  EXPECT_EQ(p->mock.records[0].words, (std::vector<int32_t>{10, 1000}));
  EXPECT_EQ(p->mock.records[1].words, (std::vector<int32_t>{20, 1002}));
  EXPECT_EQ(p->mock.records[2].words, (std::vector<int32_t>{30, 1004}));
  EXPECT_EQ(p->mock.records[1].depth, 5u);
  EXPECT_EQ(p->mock.records[2].depth, 0u);

  ListObject *none = p->mock.makeList(1, 0);
  EXPECT_EQ(p->run({reinterpret_cast<Slot>(none)}, 2), (std::vector<Slot>{0, 0}));
  EXPECT_TRUE(p->mock.records.empty());
}

TEST_P(Host, StackedScalarsAreArranged) {
  auto p = compile(R"(
    func.func @main(%xs: !sheaf.list<tensor<f32>>) -> tensor<?xf32> {
      %s = sheaf.apply "stack"(%xs) {axis = 0 : i64} : (!sheaf.list<tensor<f32>>) -> tensor<?xf32>
      return %s : tensor<?xf32>
    })");
  ListObject *list = p->mock.makeList(1, 40);
  for (int i = 0; i < 40; ++i)
    list->elements[i] = handle(100 + i, 1);
  auto out = p->run({reinterpret_cast<Slot>(list)}, 2);
  ASSERT_EQ(p->mock.records.size(), 41u);
  EXPECT_EQ(p->mock.records[0].granules, 40);
  EXPECT_EQ(p->mock.records[39].words, (std::vector<int32_t>{139, 1039}));
  EXPECT_EQ(p->mock.records[40].depth, 2u);
  EXPECT_EQ(p->mock.records[40].granules, 3);
  EXPECT_EQ(p->mock.records[40].words, (std::vector<int32_t>{1000, 40, 1040}));
  EXPECT_EQ(out, (std::vector<Slot>{handle(1040, 3), 40}));
}

TEST_P(Host, UnequalTensorsAreNotStacked) {
  auto p = compile(R"(
    func.func @main(%xs: !sheaf.list<tensor<?xf32>>) -> tensor<?x?xf32> {
      %s = sheaf.apply "stack"(%xs) {axis = 1 : i64} : (!sheaf.list<tensor<?xf32>>) -> tensor<?x?xf32>
      return %s : tensor<?x?xf32>
    })");
  ListObject *list = p->mock.makeList(2, 2);
  Slot slots[] = {handle(10), 4, handle(20), 5};
  std::copy_n(slots, 4, list->elements);
  p->run({reinterpret_cast<Slot>(list)}, 3);
  EXPECT_EQ(p->message(), "test.mlir:3: tensors with extents 4 and 5 cannot be stacked");
  list->elements[3] = 4;
  auto out = p->run({reinterpret_cast<Slot>(list)}, 3);
  EXPECT_FALSE(p->mock.failed);
  // Transposed by a kernel of its own.
  EXPECT_EQ(out, (std::vector<Slot>{handle(1002, 2), 4, 2}));
}

TEST_P(Host, RowsOfATensor) {
  auto p = compile(R"(
    func.func @main(%x: tensor<?x3x20xf32>) -> !sheaf.list<tensor<3x20xf32>> {
      %r = sheaf.rows %x : (tensor<?x3x20xf32>) -> !sheaf.list<tensor<3x20xf32>>
      return %r : !sheaf.list<tensor<3x20xf32>>
    })");
  auto out = p->run({handle(100, 7), 3}, 1);
  EXPECT_EQ(elements(out[0]), (std::vector<Slot>{handle(100, 7), handle(106, 7), handle(112, 7)}));
}

TEST_P(Host, ParametersAsValues) {
  // The first state of the fold is a constant tensor: a row that exists, at depth 0.
  auto p = compile(R"(
    sheaf.param @w : tensor<20x20xf32> init("zeros", [])
    func.func @main(%xs: !sheaf.list<tensor<20xf32>>) -> tensor<20xf32> {
      %z = sheaf.apply "zeros"() {} : () -> tensor<20xf32>
      %r = sheaf.fold %z, %xs : (tensor<20xf32>, !sheaf.list<tensor<20xf32>>) -> tensor<20xf32> {
      ^bb0(%acc: tensor<20xf32>, %x: tensor<20xf32>):
        %w = sheaf.param_ref @w : tensor<20x20xf32>
        %p = sheaf.apply "matmul"(%acc, %w) {} : (tensor<20xf32>, tensor<20x20xf32>) -> tensor<20xf32>
        %s = sheaf.apply "add"(%p, %x) {} : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
        sheaf.yield %s : tensor<20xf32>
      }
      return %r : tensor<20xf32>
    })");
  ListObject *list = p->mock.makeList(1, 2);
  list->elements[0] = handle(100, 0);
  list->elements[1] = handle(200, 9);
  auto out = p->run({reinterpret_cast<Slot>(list)}, 1);
  ASSERT_EQ(p->mock.records.size(), 2u);
  auto zeros = static_cast<int32_t>(p->param("constant_20"));
  EXPECT_EQ(p->mock.records[0].words, (std::vector<int32_t>{zeros, 100, 1000}));
  EXPECT_EQ(p->mock.records[1].words, (std::vector<int32_t>{1000, 200, 1002}));
  EXPECT_EQ(p->mock.records[1].depth, 9u);
  EXPECT_EQ(out[0], handle(1002, 10));
  ListObject *none = p->mock.makeList(1, 0);
  EXPECT_EQ(p->run({reinterpret_cast<Slot>(none)}, 1)[0], handle(static_cast<uint32_t>(zeros)));
}

} // namespace
