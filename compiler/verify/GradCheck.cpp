//===- GradCheck.cpp - Gradients against finite differences ---------------===//
#include "compiler/verify/GradCheck.h"

#include "compiler/oracle/Convert.h"
#include "compiler/oracle/Gradient.h"
#include "compiler/verify/Conditioning.h"
#include "compiler/verify/FlatValue.h"
#include "compiler/verify/LossDifferences.h"
#include "runtime/model/error.h"
#include "runtime/model/members.h"

#include "mlir/IR/BuiltinOps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <utility>

namespace sheaf::driver {

namespace {

/// By how much every element of a parameter changes: errors of central differences in f64, of the
/// third derivative and of rounding, are then about 1e-10.
constexpr double kStep = 1e-5;
/// Where a function has a kink near, a shorter step may not reach it.
constexpr double kShortStep = kStep / 8, kShortestStep = kShortStep / 8;
/// Of thousands of kinks, those of a layer of relu over many instances, some are near enough for
/// these steps; what rounding makes of the shortest is about 1e-8 of the loss.
constexpr double kShorterSteps[] = {kShortestStep, kShortestStep / 8};
/// Of the loss, or of 1: rounding in f64 makes less.
constexpr double kLossNoise = 1e-10;
/// Where the loss loses digits, in f64, too, as a difference of near-equals does, longer ones tell
/// more; the fourth derivative's share is taken off.
constexpr double kLongSteps[] = {1e-4, 1e-3};
/// Elements of a parameter that are told when they are wrong.
constexpr size_t kMostTold = 8;

/// The greater of two errors. NaN is greater than any.
double worse(double a, double b) { return std::isnan(b) ? INFINITY : std::max(a, b); }

class GradChecker {
public:
  GradChecker(const CompiledModel &model, std::span<const rt::Instance> instances,
              const std::function<void(rt::Session &)> &initialise, const GradCheckOptions &options)
      : model_(model), instances_(instances), initialise_(initialise), options_(options) {}

  GradCheckReport run() {
    report_.model = model().name;
    report_.allowed = options_.tolerance;
    report_.ok = compute() && differentiate() && compare();
    return std::move(report_);
  }

private:
  const rt::Model &model() const { return model_.model(); }

  bool fail(const std::string &message) {
    report_.problem = message;
    return false;
  }

  /// The compiled gradients, on several numbers of threads.
  bool compute() {
    for (unsigned threads : {1u, 2u, 3u}) {
      rt::SessionOptions options = options_.session;
      options.threads = threads;
      options.keepBytes = 0;
      rt::Session session(model(), options);
      initialise_(session);
      rt::ReadLog log;
      if (threads == 1)
        session.setReadLog(&log);
      std::span<const rt::Outcome> outcomes = session.run(instances_);
      if (threads == 1) {
        leaveOut(outcomes);
        for (size_t i = 0; i < instances_.size(); ++i)
          reads_.push_back(log.of(i));
      }
      if (good_.empty())
        return fail("every instance fails: " + report_.failure);
      for (size_t i = 0; i < outcomes.size(); ++i) {
        if (outcomes[i].ok() != failures_[i].empty())
          return fail(fmt::format("instance {} fails on some numbers of threads only",
                                  instances_[i].index));
        if (!failures_[i].empty())
          continue;
        float loss = 0;
        session.tensor(model().entry.resultType, outcomes[i].slots).copyTo(&loss);
        if (!std::isfinite(loss))
          return fail(fmt::format("instance {}: the loss is not finite", instances_[i].index));
      }
      std::vector<float> weights(instances_.size(), 1.0F / static_cast<float>(good_.size()));
      std::span<const rt::ParamGradient> gradients = session.backward(weights);
      if (threads == 1)
        weights_ = oracle::weightsOf(session);
      for (size_t i = 0; i < model().params.size(); ++i) {
        std::vector<float> gradient = gradientOf(model().params[i], gradients[i]);
        if (threads == 1)
          gradients_.push_back(std::move(gradient));
        else if (!gradient.empty() && std::memcmp(gradient.data(), gradients_[i].data(),
                                                  gradient.size() * sizeof(float)) != 0)
          return fail(fmt::format("the gradient of {} is not the same on {} threads as on one",
                                  model().params[i].name, threads));
      }
      if (options_.inputs && !computeInputs(session, threads, weights.front()))
        return false;
    }
    return true;
  }

  /// The compiled gradients of arguments; on one thread, each instance alone has to have them, too.
  bool computeInputs(rt::Session &session, unsigned threads, float weight) {
    std::vector<std::vector<std::vector<float>>> inputs; // by instance and argument
    for (size_t i = 0; i < instances_.size(); ++i)
      if (failures_[i].empty())
        inputs.push_back(inputGradientsOf(session, i));
    const std::vector<std::string> &names = model().entry.argNames;
    auto differs = [](const std::vector<float> &a, const std::vector<float> &b) {
      return a.size() != b.size() ||
             (!a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0);
    };
    for (size_t argument = 0; argument < names.size(); ++argument) {
      std::vector<float> all;
      for (const auto &ofInstance : inputs)
        all.insert(all.end(), ofInstance[argument].begin(), ofInstance[argument].end());
      if (threads == 1)
        inputs_.push_back(std::move(all));
      else if (differs(all, inputs_[argument]))
        return fail(fmt::format("the gradient of {} is not the same on {} threads as on one",
                                inputName(names[argument]), threads));
    }
    if (threads > 1 || model().reads) // instances that read wait for others
      return true;
    for (size_t i = 0; i < good_.size(); ++i) {
      if (!session.run({&good_[i], 1}).front().ok())
        return fail(fmt::format("instance {} fails alone", good_[i].index));
      session.backward({&weight, 1});
      std::vector<std::vector<float>> alone = inputGradientsOf(session, 0);
      for (size_t argument = 0; argument < names.size(); ++argument)
        if (differs(alone[argument], inputs[i][argument]))
          return fail(fmt::format("the gradient of {} of instance {} is not the same alone",
                                  inputName(names[argument]), good_[i].index));
    }
    return true;
  }

  /// Of an instance of the last run, by argument.
  std::vector<std::vector<float>> inputGradientsOf(const rt::Session &session, size_t instance) {
    const rt::TypeTable &types = model().types;
    std::vector<int64_t> slots;
    for (uint32_t type = 0; type < types.types.size(); ++type)
      slots.push_back(types.slots(type));
    std::vector<std::vector<float>> gradients;
    const rt::Slot *at = session.arguments(instance);
    for (const uint32_t &type : model().entry.argTypes) {
      std::vector<float> &gradient = gradients.emplace_back();
      rt::forEachTensor(
          types, slots, {{&type, 1}, false, 1, at}, [](uint32_t) { return true; },
          [&](uint32_t tensor, const rt::Slot *value) {
            if (types.types[tensor].dtype != rt::DType::F32)
              return;
            rt::TensorView view = session.inputGradient(tensor, value);
            size_t begin = gradient.size();
            gradient.resize(begin + static_cast<size_t>(view.elements()));
            view.copyTo(gradient.data() + begin);
          });
      at += slots[type];
    }
    return gradients;
  }

  void leaveOut(std::span<const rt::Outcome> outcomes) {
    report_.instances = instances_.size();
    for (size_t i = 0; i < outcomes.size(); ++i) {
      failures_.push_back(outcomes[i].ok() ? "" : outcomes[i].error->what());
      if (outcomes[i].ok())
        good_.push_back(instances_[i]);
      else if (report_.failed++ == 0)
        report_.failure = failures_[i];
    }
  }

  /// The mean loss and its gradients by the oracle; whether the same instances fail in it. It takes
  /// what was read, which is compared with its own in f64: gradients of another way through the
  /// program could not be compared.
  bool gradientsOf(mlir::ModuleOp program, oracle::Precision precision,
                   oracle::ParamGradients &gradients,
                   std::optional<uint64_t> perturbation = std::nullopt) {
    oracle::Replay replay(model_.readPaths(), allowedError(model_));
    oracle::GradientOracle differentiated(program, precision,
                                          {.sampleSeed = options_.session.sampleSeed,
                                           .replay = &replay,
                                           .perturbation = perturbation});
    differentiated.setWeights(weights_);
    auto count = static_cast<double>(good_.size());
    double sum = 0;
    std::vector<std::vector<double>> ofInputs;
    for (size_t i = 0; i < instances_.size(); ++i) {
      const rt::Instance &instance = instances_[i];
      replay.expect(reads_[i]);
      // One that was given up as endless may be so for the oracle.
      differentiated.limitCalls(failures_[i].empty() ? std::numeric_limits<int64_t>::max()
                                                     : mostCalls(options_.session.maxSteps));
      try {
        sum += differentiated.addGradients(
            model().entry.name,
            oracle::fromInstance(model().types, model().entry.argTypes, instance.args),
            instance.index, 0, 1 / count, gradients, options_.inputs ? &ofInputs : nullptr);
        for (size_t argument = 0; argument < ofInputs.size(); ++argument) {
          std::vector<double> &all =
              gradients[inputName(model().entry.argNames[argument])].elements;
          all.insert(all.end(), ofInputs[argument].begin(), ofInputs[argument].end());
        }
      } catch (const RunError &error) {
        if (failures_[i].empty())
          return fail(std::string(error.what()) + ", by the oracle only");
        continue;
      }
      if (!failures_[i].empty())
        return fail(failures_[i] + ", as compiled only");
      std::string wrong = precision == oracle::Precision::F64 ? wrongReadOf(i, replay) : "";
      if (wrong.empty())
        wrong = missingRead(model(), replay);
      if (!wrong.empty())
        return fail(fmt::format("instance {}: {}", instance.index, wrong));
    }
    loss_ = sum / count;
    return true;
  }

  /// As --verify has it.
  std::string wrongReadOf(size_t instance, const oracle::Replay &wide) {
    double allowed = wide.near();
    std::string wrong = wrongRead(model(), wide, {&allowed, 1});
    if (wrong.empty())
      return wrong;
    if (!conditioning_)
      conditioning_.emplace(model_, weights_, options_.session.sampleSeed,
                            mostCalls(options_.session.maxSteps));
    bool isExcused =
        conditioning_->excuses(instances_[instance], reads_[instance], wide, /*results=*/nullptr);
    return isExcused ? "" : wrong;
  }

  bool isBf16() const { return model_.precision() == Precision::Bf16; }

  /// What compiled gradients are compared with.
  oracle::ParamGradients &expected() { return isBf16() ? rounded_ : exact_; }

  /// Whether the program loses as much in any arithmetic of its precision.
  bool isConditioned(const std::string &param, std::span<const double> compiled, double allowed) {
    for (;; ++perturbedRuns_) {
      if (auto it = deviations_.find(param);
          it != deviations_.end() && it->second.excuses(compiled, allowed))
        return true;
      if (perturbedRuns_ == kPerturbedRuns)
        return false;
      double loss = loss_;
      std::string problem = std::exchange(report_.problem, "");
      oracle::ParamGradients gradients;
      bool isSameWay = isBf16() ? gradientsOf(model_.roundedProgram(), oracle::Precision::Bf16,
                                              gradients, perturbedRuns_)
                                : gradientsOf(model_.program(), oracle::Precision::F32, gradients,
                                              perturbedRuns_);
      loss_ = loss;
      report_.problem = std::move(problem);
      if (!isSameWay)
        continue; // it says nothing
      for (const auto &[name, gradient] : expected()) {
        if (gradient.elements.empty())
          continue;
        std::vector<double> &perturbed = gradients[name].elements;
        perturbed.resize(gradient.elements.size());
        deviations_.try_emplace(name, gradient.elements).first->second.add(std::move(perturbed));
      }
    }
  }

  bool differentiate() {
    if (isBf16() && !gradientsOf(model_.roundedProgram(), oracle::Precision::Bf16, rounded_))
      return false;
    if (!gradientsOf(model_.program(), oracle::Precision::F64, exact_))
      return false;
    if (!std::isfinite(loss_))
      return fail("the loss of the oracle is not finite");
    std::vector<LossDifferences::Reads> ofGood;
    for (size_t i = 0; i < reads_.size(); ++i)
      if (failures_[i].empty())
        ofGood.push_back(reads_[i]);
    differences_.emplace(model_, good_, weights_, std::move(ofGood), options_.session.sampleSeed);
    return true;
  }

  static double along(const std::vector<double> &gradient, const Direction &direction) {
    double sum = 0;
    for (size_t i = direction.begin; i < direction.end && i < gradient.size(); ++i)
      sum += gradient[i] * direction.signs[i];
    return sum;
  }

  /// Whether the loss has another slope on one side of the point than on the other, and the
  /// gradient is between them: there is no derivative that it could be compared with.
  bool hasKink(const ParamCheck &check, const std::vector<double> &gradient,
               const Direction &direction) {
    double tolerance = GradCheckOptions::kOracleTolerance * check.scale;
    Slopes far = differences_->slopes(direction, kStep);
    Slopes near = differences_->slopes(direction, kShortStep);
    // What curvature makes of the difference goes with the step.
    double jump = std::fabs(near.right - near.left), farJump = std::fabs(far.right - far.left);
    if (!(jump > tolerance && jump > farJump / 2) || isNoise(direction, jump, farJump))
      return false;
    double slack =
        tolerance + std::max(std::fabs(far.right - near.right), std::fabs(far.left - near.left));
    double g = along(gradient, direction);
    return slack < jump && g >= std::min(near.left, near.right) - slack &&
           g <= std::max(near.left, near.right) + slack;
  }

  /// What the loss loses to rounding in f64 makes of the difference of two slopes grows as steps
  /// get shorter; a kink that a short step reaches, longer ones reach as well.
  bool isNoise(const Direction &direction, double jump, double farJump) {
    if (jump <= farJump)
      return false;
    Slopes further = differences_->slopes(direction, kLongSteps[0]);
    return jump > 2 * farJump || jump > 2 * std::fabs(further.right - further.left);
  }

  /// Whether the loss is another at the point than next to it on some side, or leaves it steeper
  /// the nearer one looks, as `where(w == 0, 1, sin(w) / w)` and `where(w > 0, 1 / w, 0)` do at 0:
  /// what was not chosen at the point is beside it.
  bool isApart(const Direction &direction) {
    Slopes far = differences_->slopes(direction, kStep);
    Slopes near = differences_->slopes(direction, kShortStep);
    Slopes nearest = differences_->slopes(direction, kShortestStep);
    auto growsWithoutEnd = [&](double a, double b, double c) {
      bool isOneWay = std::signbit(a) == std::signbit(b) && std::signbit(b) == std::signbit(c);
      bool isNoise = std::fabs(c) * kShortestStep <= kLossNoise * std::max(1.0, std::fabs(loss_));
      return isOneWay && !isNoise && std::fabs(b) > 2 * std::fabs(a) &&
             std::fabs(c) > 2 * std::fabs(b);
    };
    return growsWithoutEnd(far.left, near.left, nearest.left) ||
           growsWithoutEnd(far.right, near.right, nearest.right);
  }

  static double errorOf(const ParamCheck &check, double slope, double expected) {
    return worse(0, std::fabs(slope - expected) / check.scale);
  }

  /// The oracle's gradient along a direction in which no element stands still: that one of them is
  /// wrong shows as it is, with a random sign.
  bool checkDirection(ParamCheck &check, const std::vector<double> &gradient) {
    std::vector<double> signs(check.elements);
    for (double &sign : signs)
      sign = random_() & 1 ? 1 : -1;
    Direction direction{check.name, signs, 0, signs.size()};
    double expected = along(gradient, direction);
    double far = differences_->slope(direction, kStep), near = far;
    double error = errorOf(check, far, expected);
    if (error > GradCheckOptions::kOracleTolerance) {
      near = differences_->slope(direction, kShortStep);
      error = std::min(error, errorOf(check, near, expected));
      // Where the slope itself has a kink, as that of square(relu(x)), the error goes with the
      // step.
      double limit = near + (near - far) * kShortStep / (kStep - kShortStep);
      error = std::min(error, errorOf(check, limit, expected));
    }
    for (double step : kShorterSteps) {
      if (error <= GradCheckOptions::kOracleTolerance)
        break;
      error = std::min(error, errorOf(check, differences_->slope(direction, step), expected));
    }
    for (double step : kLongSteps) {
      if (error <= GradCheckOptions::kOracleTolerance)
        break;
      double slope = differences_->slope(direction, step);
      double half = differences_->slope(direction, step / 2);
      error = std::min(error, errorOf(check, half + (half - slope) / 3, expected));
    }
    if (error <= GradCheckOptions::kOracleTolerance) {
      check.oracleError = std::max(check.oracleError, error);
      return true;
    }
    // A decision that turns around makes the loss jump: the quotient has no limit.
    // The jump itself is the same at any step, and not what rounding makes of it.
    double jump = (near - expected) * kShortStep, farJump = (far - expected) * kStep;
    bool jumps = std::isfinite(expected) &&
                 std::fabs(near) > 4 * std::max(std::fabs(far), std::fabs(expected)) &&
                 std::fabs(jump - farJump) <= std::fabs(jump) / 4;
    if (jumps || hasKink(check, gradient, direction) ||
        (std::isfinite(expected) && isApart(direction))) {
      ++check.leftOut;
      return true;
    }
    WrongGradient wrong = findWrong(gradient, direction);
    // Kinks of several elements may make up for each other.
    if (hasKink(check, gradient, {check.name, signs, wrong.element, wrong.element + 1})) {
      ++check.leftOut;
      return true;
    }
    check.oracleError = std::max(check.oracleError, error);
    check.wrongRule.push_back(wrong);
    return false;
  }

  /// The element that is most to blame, by halves.
  WrongGradient findWrong(const std::vector<double> &gradient, Direction direction) {
    auto deviation = [&](size_t begin, size_t end) {
      Direction part{direction.param, direction.signs, begin, end};
      return worse(0, std::fabs(differences_->slope(part, kStep) - along(gradient, part)));
    };
    size_t &begin = direction.begin, &end = direction.end;
    while (end - begin > 1) {
      size_t middle = begin + (end - begin) / 2;
      (deviation(begin, middle) >= deviation(middle, end) ? end : begin) = middle;
    }
    return {begin, begin < gradient.size() ? gradient[begin] : 0,
            differences_->slope(direction, kStep) * direction.signs[begin]};
  }

  /// Every element of the compiled gradient.
  bool compareCompiled(ParamCheck &check, const std::vector<float> &compiled,
                       const std::vector<double> &exact) {
    for (size_t i = 0; i < check.elements; ++i) {
      double actual = i < compiled.size() ? static_cast<double>(compiled[i]) : 0;
      double expected = i < exact.size() ? exact[i] : 0;
      double error = std::fabs(expected - actual) / check.scale;
      check.error = worse(check.error, error);
      if (error <= options_.tolerance)
        continue;
      if (++check.wrongCount <= kMostTold)
        check.wrong.push_back({i, actual, expected});
    }
    if (check.wrongCount == 0)
      return true;
    std::vector<double> actual(compiled.begin(), compiled.end());
    actual.resize(check.elements);
    if (!isConditioned(check.name, actual, options_.tolerance * check.scale))
      return false;
    check.conditioned = deviations_.at(check.name).bound() / check.scale;
    check.wrong.clear();
    check.wrongCount = 0;
    return true;
  }

  bool compare() {
    struct Compared {
      std::string name;
      size_t elements;
      const std::vector<float> &compiled;
    };
    std::vector<Compared> trained; // only f32 is
    for (size_t i = 0; i < model().params.size(); ++i)
      if (const rt::ParamDesc &param = model().params[i];
          !param.synthetic && param.dtype == rt::DType::F32)
        trained.push_back({param.name, weights_.at(param.name)->data.size(), gradients_[i]});
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!inputs_[i].empty())
        trained.push_back({inputName(model().entry.argNames[i]), inputs_[i].size(), inputs_[i]});
    double greatestOfAll = 0;
    for (const Compared &each : trained)
      for (double g : exact_[each.name].elements)
        if (std::isfinite(g))
          greatestOfAll = std::max(greatestOfAll, std::fabs(g));
    auto total = static_cast<int64_t>(trained.size()) * options_.directions;
    int64_t done = 0;
    bool ok = true;
    for (const Compared &each : trained) {
      ParamCheck &check = report_.params.emplace_back();
      check.name = each.name;
      check.elements = each.elements;
      const std::vector<double> &exact = exact_[check.name].elements;
      for (double g : exact)
        check.greatest = worse(check.greatest, std::fabs(g));
      // Of a parameter that does next to nothing the loss's own rounding would be compared; of one
      // whose parts cancel, as those of a bias of all keys do, that of the parts.
      check.scale =
          std::max({1e-4 * std::max(1.0, std::fabs(loss_)), 1e-2 * greatestOfAll, check.greatest});
      ok &= compareCompiled(check, each.compiled, expected()[check.name].elements);
      for (int64_t i = 0; i < options_.directions; ++i) {
        if (options_.progress)
          options_.progress(++done, total);
        ++check.directions;
        if (!checkDirection(check, exact)) {
          ok = false;
          break;
        }
      }
    }
    return ok;
  }

  const CompiledModel &model_;
  std::span<const rt::Instance> instances_;
  const std::function<void(rt::Session &)> &initialise_;
  const GradCheckOptions &options_;
  std::vector<std::string> failures_; ///< by instance; nothing of those that did not fail
  std::vector<rt::Instance> good_;
  oracle::Weights weights_;
  std::vector<std::vector<float>> gradients_; ///< by parameter
  std::vector<std::vector<float>> inputs_;    ///< by argument, if they are asked for
  oracle::ParamGradients exact_;
  oracle::ParamGradients rounded_; ///< in bf16, where the model computes in it
  double loss_ = 0;
  std::optional<Conditioning> conditioning_;    ///< of reads
  std::map<std::string, Deviation> deviations_; ///< of gradients in perturbed runs
  uint64_t perturbedRuns_ = 0;
  std::optional<LossDifferences> differences_;
  std::vector<LossDifferences::Reads> reads_; ///< of the compiled program, by instance
  std::mt19937_64 random_{1};
  GradCheckReport report_;
};

} // namespace

void requireLoss(const rt::Model &model) {
  if (model.entry.emits)
    throw UserError("'" + model.entry.name + "' is no loss: it emits");
  const rt::TypeDesc &type = model.types.types.at(model.entry.resultType);
  if (type.kind != rt::TypeKind::Tensor || type.dtype != rt::DType::F32 || !type.shape.empty())
    throw UserError("'" + model.entry.name + "' is no loss: its result must be f32 without axes");
}

GradCheckReport checkGradients(const CompiledModel &model, std::span<const rt::Instance> instances,
                               const std::function<void(rt::Session &)> &initialise,
                               const GradCheckOptions &options) {
  return GradChecker(model, instances, initialise, options).run();
}

} // namespace sheaf::driver
