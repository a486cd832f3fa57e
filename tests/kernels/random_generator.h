//===- random_generator.h - The generator of random blocks ------*- C++ -*-===//
#ifndef SHEAF_TESTS_KERNELS_RANDOM_GENERATOR_H
#define SHEAF_TESTS_KERNELS_RANDOM_GENERATOR_H

#include "tests/kernels/random_block.h"

#include "compiler/ops/Build.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <random>

namespace sheaf::test {

/// A tensor of the block.
struct Tensor {
  mlir::Value value;
  std::vector<Dim> dims;
  ops::DType dtype = ops::DType::F32;
  double bound = 2;  ///< about the greatest magnitude
  bool exact = true; ///< not rounded: steps and comparisons of it are decided
};

/// Makes a block step by step: each step takes tensors that are there, or new arguments and
/// weights, and adds what operators make of them. Extents are numbers or the symbols n (may be 0)
/// and m (at least 1), which all tensors of a record share, or stand for an int argument.
class Generator {
public:
  Generator(mlir::MLIRContext &context, unsigned seed)
      : random_(seed), b_(mlir::UnknownLoc::get(&context), &context) {}

  RandomBlock run(std::optional<size_t> onlyResult);

private:
  // Choices.
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  int64_t size() {
    static constexpr int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  12, 15,
                                        16, 17, 20, 24, 31, 32, 33, 40, 48, 70};
    return chance(2) ? 0 : sizes[below(chance(70) ? 13 : 20)];
  }
  Dim extent() {
    if (!ragged_ || chance(60))
      return size();
    return Dim::symbol(chance(50) ? "n" : "m");
  }
  ops::DType floatType() {
    return chance(80) ? ops::DType::F32 : chance(50) ? ops::DType::BF16 : ops::DType::F16;
  }
  using Test = llvm::function_ref<bool(const Tensor &)>;
  std::optional<Tensor> choose(Test test);
  std::optional<Tensor> chooseFloat(Test test);

  // Making values.
  Tensor argument(std::vector<Dim> dims, ops::DType dtype);
  mlir::Value hostArgument(mlir::Type type);
  mlir::Value numberArgument(int64_t limit, unsigned bits = 64);
  Tensor weight(std::vector<Dim> dims, ops::DType dtype);
  Tensor operand(const std::vector<Dim> &dims, ops::DType dtype);
  Tensor make(llvm::StringRef op, llvm::ArrayRef<Tensor> operands, std::vector<Dim> dims,
              ops::DType dtype, double bound, bool exact, const ops::CallArgs &args = {},
              mlir::ValueRange host = {});
  std::optional<ops::Extent> extentValue(const Dim &dim);
  std::optional<std::vector<ops::Extent>> extentValues(const std::vector<Dim> &dims);
  static bool fits(const std::vector<Dim> &dims);
  /// Keeps magnitudes small.
  Tensor tamed(Tensor t);

  // Steps (random_steps.cpp, random_movement.cpp); one may find nothing to do.
  void step();
  void unary();
  void binary();
  void integer();
  void logic();
  void cast();
  void product();
  void gates();
  void softmax();
  void reduction();
  void concat();
  void split();
  void window();
  void pick();
  void gather();
  void transpose();
  void flip();
  void reshape();
  void broadcast();
  void fill();

  std::mt19937 random_;
  mlir::ImplicitLocOpBuilder b_;
  mlir::Block *body_ = nullptr;
  int64_t numArgs_ = 0;
  bool ragged_ = false;
  std::vector<Tensor> pool_;
  llvm::DenseMap<mlir::Value, std::vector<Dim>> argDims_;
  llvm::DenseMap<mlir::Value, int64_t> numberLimits_;
  /// The int argument that a symbol of extents stands for.
  std::map<std::string, mlir::Value> numberOf_;
};

inline bool isNumber(const Dim &d) { return d.isConstant(); }
inline bool isOne(const Dim &d) { return d == Dim(1); }
/// A bound for the number of elements.
int64_t most(const std::vector<Dim> &dims);
std::optional<std::vector<Dim>> broadcastDims(const std::vector<Dim> &a, const std::vector<Dim> &b);

} // namespace sheaf::test

#endif // SHEAF_TESTS_KERNELS_RANDOM_GENERATOR_H
