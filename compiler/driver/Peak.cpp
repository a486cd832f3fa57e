//===- Peak.cpp - What one core can do at most ----------------------------===//
#include "compiler/driver/Peak.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <chrono>

namespace sheaf::driver {

namespace {

CodeModule buildLoop(int64_t lanes, int64_t chains, int64_t unroll, bool fused) {
  CodeModule code;
  code.context = std::make_unique<llvm::LLVMContext>();
  code.module = std::make_unique<llvm::Module>("peak", *code.context);
  llvm::IRBuilder<> b(*code.context);
  llvm::Type *f32 = b.getFloatTy();
  llvm::Type *i64 = b.getInt64Ty();
  auto *vector = llvm::FixedVectorType::get(f32, lanes);
  auto *function = llvm::Function::Create(llvm::FunctionType::get(f32, {i64, f32, f32}, false),
                                          llvm::Function::ExternalLinkage, "peak", *code.module);
  auto *entry = llvm::BasicBlock::Create(*code.context, "entry", function);
  auto *body = llvm::BasicBlock::Create(*code.context, "body", function);
  auto *done = llvm::BasicBlock::Create(*code.context, "done", function);

  b.SetInsertPoint(entry);
  llvm::Value *factor = b.CreateVectorSplat(lanes, function->getArg(1));
  llvm::Value *summand = b.CreateVectorSplat(lanes, function->getArg(2));
  std::vector<llvm::Value *> start;
  for (int64_t c = 0; c < chains; ++c)
    start.push_back(
        b.CreateFAdd(summand, llvm::ConstantFP::get(vector, static_cast<double>(c + 1) / 16)));
  b.CreateBr(body);

  b.SetInsertPoint(body);
  llvm::PHINode *i = b.CreatePHI(i64, 2);
  i->addIncoming(b.getInt64(0), entry);
  std::vector<llvm::PHINode *> phis;
  std::vector<llvm::Value *> chain;
  for (int64_t c = 0; c < chains; ++c) {
    phis.push_back(b.CreatePHI(vector, 2));
    phis.back()->addIncoming(start[c], entry);
    chain.push_back(phis.back());
  }
  for (int64_t u = 0; u < unroll; ++u)
    for (llvm::Value *&value : chain)
      value = fused ? b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {value, factor, summand})
                    : b.CreateFAdd(b.CreateFMul(value, factor), summand);
  for (int64_t c = 0; c < chains; ++c)
    phis[c]->addIncoming(chain[c], body);
  llvm::Value *next = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(next, body);
  b.CreateCondBr(b.CreateICmpSLT(next, function->getArg(0)), body, done);

  b.SetInsertPoint(done);
  llvm::Value *sum = chain[0];
  for (int64_t c = 1; c < chains; ++c)
    sum = b.CreateFAdd(sum, chain[c]);
  b.CreateRet(b.CreateExtractElement(sum, b.getInt64(0)));
  return code;
}

} // namespace

PeakProbe::PeakProbe(const Processor &processor, int64_t lanes, int64_t registers, bool fused) {
  // Factor and summand stay in registers too.
  int64_t chains = std::min<int64_t>(registers - 2, 24);
  int64_t unroll = 4;
  std::vector<CodeModule> modules;
  modules.push_back(buildLoop(lanes, chains, unroll, fused));
  jit_ = Jit::compile(std::move(modules), processor, 1);
  loop_ = reinterpret_cast<Loop>(jit_->address("peak"));
  flopPerIteration_ = 2.0 * static_cast<double>(lanes * chains * unroll);

  // Lengthen the loop until it takes a millisecond.
  iterations_ = 1000;
  for (;;) {
    double seconds = run(iterations_);
    if (seconds >= 0.8e-3)
      break;
    double scale = seconds > 0 ? std::min(1e-3 / seconds, 16.0) : 16.0;
    iterations_ = static_cast<int64_t>(static_cast<double>(iterations_) * scale) + 1;
  }
}

double PeakProbe::run(int64_t iterations) {
  auto begin = std::chrono::steady_clock::now();
  volatile float sink = loop_(iterations, 0.5f, 0.25f);
  static_cast<void>(sink);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double PeakProbe::measure() {
  double seconds = run(iterations_);
  return flopPerIteration_ * static_cast<double>(iterations_) / seconds * 1e-9;
}

} // namespace sheaf::driver
