//===- Verify.h - Compiled code against the oracle --------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_VERIFY_VERIFY_H
#define SHEAF_COMPILER_VERIFY_VERIFY_H

#include "compiler/driver/Compiler.h"
#include "runtime/session/session.h"

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace sheaf::driver {

struct VerifyOptions {
  int64_t batch = 64; ///< compared with batches 1, 3 and all instances
  rt::SessionOptions session;
  /// Told what is being compared and how many of how many instances are done. May be empty.
  std::function<void(const char *what, int64_t done, int64_t total)> progress;
};

/// What was compared and how closely it agreed.
struct VerifyReport {
  bool ok = false;
  std::string model;
  int64_t instances = 0;
  Precision precision = Precision::F32;
  bool narrowFloats = false; ///< the program has 16-bit floats of its own

  bool agrees = false;        ///< with the oracle
  double allowed = 1e-5;      ///< largest error, of max(1, max|b|)
  double largestError = 0;    ///< of those that keep to it
  int64_t byConditioning = 0; ///< instances allowed what perturbed runs lose (Conditioning.h)
  double conditioned = 0;     ///< the greatest error that they were allowed, likewise
  int64_t reads = 0;          ///< numbers that they read, each compared with the oracle's
  int64_t nearTies = 0;       ///< instances that decide a near-tie otherwise than the oracle would
  int64_t failed = 0;         ///< instances that fail, in both
  std::string firstFailure;   ///< the first of them and why
  bool sameBits = false;      ///< across batches, orders, threads and policies
  /// Libraries that compute products: bits are then equal only for the same mini-batch and threads.
  std::set<std::string> libraries;
  bool repeats = false; ///< with libraries: all of these agree, and give the same bits twice
  std::vector<int64_t> batches; ///< sizes
  std::string problem;          ///< unless ok: the instance and the numbers
};

std::string verifyText(const VerifyReport &report);
std::string verifyJson(const VerifyReport &report);

/// Runs every instance
/// - in the oracle, in f64: |a - b| <= 1e-5 * max(1, max|b| of the tensor), and where a program's
///   conditioning makes that impossible, 4 times the worst error of oracles whose roundings to f32
///   go either way, which the text says (of a model in bf16: 2e-2, and of oracles that round where
///   it does);
///   constructors, lengths and the instances that fail must be the same. The oracle takes what an
///   instance read, and the ints of its result, as they were found (compiler/oracle/Replay.h), and
///   compares them with its own: floats to the tolerance, ints and bools by how far the numbers
///   that decide them are from deciding so;
/// - in batches of 1, 3, `batch` and all, shuffled, on 1 and 2 threads, and under the other
///   policies: bit by bit the same.
/// Where libraries compute products, which promise no equal bits across batches: each of these is
/// compared with the oracle, and the same mini-batches are run twice on 1 and 2 threads.
/// `initialise` gives a session its weights.
VerifyReport verify(const CompiledModel &model, std::span<const rt::Instance> instances,
                    const std::function<void(rt::Session &)> &initialise,
                    const VerifyOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_VERIFY_VERIFY_H
