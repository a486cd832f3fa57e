//===- config.h - What a training was begun with ----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_FIT_CONFIG_H
#define SHEAF_RUNTIME_FIT_CONFIG_H

#include "runtime/train/trainer.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::fit {

struct TrainingOptions;

/// What stands in `config.json` of a training's directory: the options of `sheaf train`, as they
/// are written there, that its course depends on. `sheaf train --resume` needs no others.
struct TrainConfig {
  std::string model;
  std::vector<std::string> dims; ///< NAME=VALUE
  std::string constants;
  std::string loss;
  std::vector<std::string> without;
  std::string target = "cpu", targetCpu = "host", targetCache;
  std::string precision = "f32";
  bool dropout = false;
  std::vector<std::string> vocab; ///< empty: those beside the weights
  std::string data, dataFormat = "auto";
  bool strictVocab = false, strictData = false;
  std::string skipBadLines, tokenizer;
  std::string weights;
  bool strictWeights = false;
  std::vector<std::string> rename, initFrom, fresh;
  /// The weights that it began with are in no file that is named here: without a checkpoint only
  /// who began it can go on.
  bool ownWeights = false;
  uint64_t seed = 0, sampleSeed = 0;
  std::string memoryLimit, foldMemory, maxDepth, maxSteps, fibers, forks = "worth";
  bool hostile = false;
  std::string dev;
  std::vector<std::string> metric;
  std::string optimizer, schedule, reduction, lossScale;
  double rate = 0, momentum = 0, beta1 = 0, beta2 = 0, decay = 0, epsilon = 0;
  double weightDecay = 0, clip = 0, ema = 0;
  std::vector<std::string> freeze, noDecay, rateFor, decayFor;
  std::vector<std::string> rateFactors; ///< NAME=FACTOR: times the learning rate
  std::string warmup = "0", batch, accumulate, parts = "auto";
  int sums = rt::kOrderOfSums;
  std::string epochs, patience = "0", logEvery = "10";
  bool tensorboard = false, detectAnomaly = false;
  std::string keep, checkpointEvery = "0";
  /// Of files that it began with, by option.
  std::map<std::string, std::string> hashes;
  std::vector<std::string>
      history;        ///< what was changed where it was taken up, and after which step
  bool ended = false; ///< and kept no checkpoint
  /// Options of which the program that began it cannot tell the values, since they are no files.
  std::vector<std::string> untold;

  /// Writes it, whole or not at all. Throws UserError.
  void save(const std::string &path) const;
  /// Takes what a file says; what older files lack stays. Throws UserError.
  void load(const std::string &path);
};

/// Calls `visit(key, member)` for each member, in the order of the file.
template <typename Visit> void forEachConfigMember(Visit visit) {
  using C = TrainConfig;
  visit("model", &C::model);
  visit("dims", &C::dims);
  visit("constants", &C::constants);
  visit("loss", &C::loss);
  visit("without", &C::without);
  visit("target", &C::target);
  visit("target_cpu", &C::targetCpu);
  visit("target_cache", &C::targetCache);
  visit("precision", &C::precision);
  visit("dropout", &C::dropout);
  visit("vocab", &C::vocab);
  visit("data", &C::data);
  visit("data_format", &C::dataFormat);
  visit("strict_vocab", &C::strictVocab);
  visit("strict_data", &C::strictData);
  visit("skip_bad_lines", &C::skipBadLines);
  visit("tokenizer", &C::tokenizer);
  visit("weights", &C::weights);
  visit("strict_weights", &C::strictWeights);
  visit("rename", &C::rename);
  visit("init_from", &C::initFrom);
  visit("fresh", &C::fresh);
  visit("own_weights", &C::ownWeights);
  visit("seed", &C::seed);
  visit("sample_seed", &C::sampleSeed);
  visit("memory_limit", &C::memoryLimit);
  visit("fold_memory", &C::foldMemory);
  visit("max_depth", &C::maxDepth);
  visit("max_steps", &C::maxSteps);
  visit("fibers", &C::fibers);
  visit("forks", &C::forks);
  visit("hostile", &C::hostile);
  visit("dev", &C::dev);
  visit("metric", &C::metric);
  visit("optimizer", &C::optimizer);
  visit("schedule", &C::schedule);
  visit("reduction", &C::reduction);
  visit("loss_scale", &C::lossScale);
  visit("lr", &C::rate);
  visit("momentum", &C::momentum);
  visit("beta1", &C::beta1);
  visit("beta2", &C::beta2);
  visit("decay", &C::decay);
  visit("epsilon", &C::epsilon);
  visit("weight_decay", &C::weightDecay);
  visit("clip", &C::clip);
  visit("ema", &C::ema);
  visit("freeze", &C::freeze);
  visit("no_decay", &C::noDecay);
  visit("lr_for", &C::rateFor);
  visit("decay_for", &C::decayFor);
  visit("lr_factors", &C::rateFactors);
  visit("warmup", &C::warmup);
  visit("batch", &C::batch);
  visit("accumulate", &C::accumulate);
  visit("parts", &C::parts);
  visit("sums", &C::sums);
  visit("epochs", &C::epochs);
  visit("patience", &C::patience);
  visit("log_every", &C::logEvery);
  visit("tensorboard", &C::tensorboard);
  visit("detect_anomaly", &C::detectAnomaly);
  visit("keep", &C::keep);
  visit("checkpoint_every", &C::checkpointEvery);
  visit("hashes", &C::hashes);
  visit("history", &C::history);
  visit("ended", &C::ended);
  visit("untold", &C::untold);
}

/// The option of the command for a member: `--lr-for`, and `model`, which has no dashes.
std::string configOption(std::string_view key);

/// What is other now, as `history` has it: `--epochs "6" instead of "3"`.
std::vector<std::string> configChanges(const TrainConfig &before, const TrainConfig &now);

/// Sets what the options of a training say. Parameters are called by their names.
void describeOptions(const TrainingOptions &options, const rt::Model &model, TrainConfig &config);

} // namespace sheaf::fit

#endif // SHEAF_RUNTIME_FIT_CONFIG_H
