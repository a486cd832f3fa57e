//===- Peak.cpp - What one core can do at most ----------------------------===//
#include "compiler/measure/Peak.h"

#include "runtime/cpu/tiles.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

namespace sheaf::driver {

namespace {

/// The frame of a loop that adds to `chains` vectors, and the way from its last ones to a number.
/// `add` gives the next link of a chain.
CodeModule buildChains(int64_t lanes, int64_t chains, int64_t unroll,
                       llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &, llvm::Value *chain,
                                                        llvm::Value *factor, llvm::Value *summand)>
                           add) {
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
      value = add(b, value, factor, summand);
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

CodeModule buildLoop(int64_t lanes, int64_t chains, int64_t unroll, bool fused) {
  return buildChains(lanes, chains, unroll, [&](auto &b, auto *chain, auto *factor, auto *summand) {
    return fused ? b.CreateIntrinsic(llvm::Intrinsic::fma, {chain->getType()},
                                     {chain, factor, summand})
                 : b.CreateFAdd(b.CreateFMul(chain, factor), summand);
  });
}

/// Sums of pairs of bf16 products.
constexpr int64_t kPairLanes = 16;
CodeModule buildPairs(int64_t chains, int64_t unroll) {
  return buildChains(
      kPairLanes, chains, unroll, [](auto &b, auto *chain, auto *factor, auto *) -> llvm::Value * {
        auto *pairs = llvm::FixedVectorType::get(b.getBFloatTy(), 2 * kPairLanes);
        llvm::Value *factors = b.CreateBitCast(factor, pairs);
        return b.CreateIntrinsic(chain->getType(), llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512,
                                 {chain, factors, factors});
      });
}

/// Products of tiles of bf16: four sums of two tiles by two.
constexpr int64_t kTileRows = 16, kTileDepth = 32, kTileSums = 4;
CodeModule buildTiles(int64_t unroll) {
  CodeModule code =
      buildChains(1, 1, unroll, [](auto &b, auto *chain, auto *, auto *) -> llvm::Value * {
        for (int64_t sum = 0; sum < kTileSums; ++sum)
          b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_tdpbf16ps,
                            {b.getInt8(sum), b.getInt8(4 + sum / 2), b.getInt8(6 + sum % 2)});
        return chain;
      });
  // All tiles have 16 rows of 64 bytes.
  llvm::Function &function = *code.module->getFunction("peak");
  llvm::IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
  std::vector<uint8_t> shapes(64, 0);
  shapes[0] = 1;
  for (size_t tile = 0; tile < 8; ++tile) {
    shapes[16 + 2 * tile] = 64;
    shapes[48 + tile] = kTileRows;
  }
  auto *data = llvm::ConstantDataArray::get(*code.context, shapes);
  auto *config = b.CreateAlloca(data->getType());
  b.CreateStore(data, config);
  b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_ldtilecfg, config);
  for (int64_t tile = 0; tile < 8; ++tile)
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_tilezero, b.getInt8(tile));
  b.SetInsertPoint(function.back().getTerminator());
  b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_tilerelease,
                    llvm::ArrayRef<llvm::Value *>());
  return code;
}

} // namespace

PeakProbe::Candidate PeakProbe::makeCandidate(const rt::Target &target, CodeModule code,
                                              double flopPerIteration) {
  Candidate candidate;
  candidate.flopPerIteration = flopPerIteration;
  std::vector<CodeModule> modules;
  modules.push_back(std::move(code));
  candidate.jit = std::make_unique<Jit>(compileModules(std::move(modules), target, 1));
  candidate.loop = reinterpret_cast<Loop>(candidate.jit->address(0, "peak"));
  // Lengthen the loop until it takes a millisecond.
  candidate.iterations = 1000;
  for (;;) {
    double seconds = candidate.run(candidate.iterations);
    if (seconds >= 0.8e-3)
      break;
    double scale = seconds > 0 ? std::min(1e-3 / seconds, 16.0) : 16.0;
    candidate.iterations =
        static_cast<int64_t>(static_cast<double>(candidate.iterations) * scale) + 1;
  }
  return candidate;
}

PeakProbe::PeakProbe(const rt::Target &target, Precision precision) {
  // Factors and summand stay in registers too.
  int64_t chains = std::min<int64_t>(target.registers - 2, 24);
  constexpr int64_t unroll = 4;
  double perPass = 2.0 * static_cast<double>(chains * unroll);
  best_ = makeCandidate(target, buildLoop(target.lanes, chains, unroll, target.fma),
                        perPass * static_cast<double>(target.lanes));
  if (precision == Precision::F32)
    return;
  auto consider = [&](CodeModule code, double flopPerIteration) {
    Candidate candidate = makeCandidate(target, std::move(code), flopPerIteration);
    if (candidate.measure() > best_.measure())
      best_ = std::move(candidate);
  };
  if (target.bf16)
    consider(buildPairs(chains, unroll), perPass * 2 * kPairLanes);
  if (target.tiles && rt::allowTiles())
    consider(buildTiles(unroll), 2.0 * kTileSums * unroll * kTileRows * kTileRows * kTileDepth);
}

double PeakProbe::Candidate::run(int64_t count) const {
  auto begin = std::chrono::steady_clock::now();
  volatile float sink = loop(count, 0.5f, 0.25f);
  static_cast<void>(sink);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double PeakProbe::Candidate::measure() const {
  return flopPerIteration * static_cast<double>(iterations) / run(iterations) * 1e-9;
}

double PeakProbe::measure() { return best_.measure(); }

double PeakProbe::measureUpTo(double reached, double highest) {
  constexpr int most = 300;
  for (int i = 0; i < most && highest < reached; ++i)
    highest = std::max(highest, measure());
  return highest;
}

double copyMs(double bytes) {
  constexpr double most = 64 << 20; // twice as much takes twice as long
  constexpr double leastSeconds = 1e-4;
  constexpr int tries = 5;
  auto size = static_cast<size_t>(std::clamp(bytes, 2.0, most) / 2);
  std::vector<uint8_t> from(size, 1), to(size);
  double best = INFINITY;
  for (int64_t count = 1, timed = 0; timed < tries;) {
    auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to.data(), from.data(), size);
      asm volatile("" : : "r"(to.data()) : "memory"); // each copy is made
    }
    double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (took < leastSeconds) {
      count *= 2;
      continue;
    }
    best = std::min(best, took / static_cast<double>(count));
    ++timed;
  }
  return best * 1e3 * bytes / (2 * static_cast<double>(size));
}

} // namespace sheaf::driver
