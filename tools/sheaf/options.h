//===- options.h - Options that several subcommands share -------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_OPTIONS_H
#define SHEAF_TOOLS_SHEAF_OPTIONS_H

#include "runtime/cpu/target.h"
#include "runtime/io/read.h"
#include "runtime/io/weights.h"
#include "runtime/schedule/policy.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::tool {

/// What is added to `app` while this lives stands below a heading of its own in --help.
class HelpGroup {
public:
  HelpGroup(CLI::App &app, const std::string &heading);
  ~HelpGroup();
  HelpGroup(const HelpGroup &) = delete;
  HelpGroup &operator=(const HelpGroup &) = delete;

private:
  CLI::App &app_;
  std::string before_;
};

/// What the entry is called on the command line.
enum class EntryOption {
  Run,   ///< --entry
  Loss,  ///< --loss; the model is made for training
  Metric ///< --metric, which is the command's own
};

/// The optimisation that a training under a memory limit goes without.
inline constexpr const char *kHoistRows = "hoist-rows";

/// Which model, and how it is compiled.
struct ModelOptions {
  std::string model;
  std::vector<std::string> dims; ///< NAME=VALUE
  std::string constants;         ///< that a training began with, as io::constantsText() writes them
  std::string entry = "main";
  std::string entryOption = "--entry"; ///< what the command calls the option for it
  CLI::Option *entryGiven = nullptr;   ///< null: it is always given
  std::vector<std::string> without;
  std::string target = "cpu";
  std::string targetCpu = "host";
  std::string targetCache;
  std::string precision = "f32";
  std::string numericClass = "exact";
  std::string verbose; ///< `dispatch`, or empty
  std::string dump;    ///< a directory, or empty
  bool dropout = false;
  bool training = false; ///< driver::CompileOptions::training
  bool inputGradients = false;
  /// There is a --memory-limit: in training, what would take further rows (kHoistRows) is left out.
  bool limited = false;
  std::vector<std::string> vocabs; ///< FILE or NAME=FILE

  std::string store; ///< a directory, `none`, or empty: as the environment says

  bool artefacts = false; ///< whether the command runs artefacts, too
  std::string sha256;     ///< of an artefact; empty: any

  void add(CLI::App &app, bool vocabulary, EntryOption which = EntryOption::Run);
  /// The command compiles to code, which a store may hold.
  void addStore(CLI::App &app);
  /// The command tells on request how it came to its code.
  void addVerbose(CLI::App &app);
  /// The command runs artefacts, too.
  void addArtefact(CLI::App &app);
};

/// Throws UsageError when a file that is to be written is one that is read, or another that is
/// written.
void checkOutputs(const std::vector<std::string> &outputs, const std::vector<std::string> &inputs);

/// Which instances.
struct DataOptions {
  std::string data;
  std::string format = "auto";
  bool strictVocab = false;
  bool strictData = false;
  std::string skipBadLines;
  std::string tokenizer; ///< a tokenizer.json, or empty

  void add(CLI::App &app, bool required = true);
  /// Of these options those that say how a file is read.
  void addReading(CLI::App &app);
  /// Throws UsageError.
  io::ReadOptions reading() const;
};

/// Which weights.
struct WeightOptions {
  std::string weights;
  uint64_t seed = 0;
  CLI::Option *seedGiven = nullptr; ///< null: weights may begin as they are initialised
  bool checkNan = false, strict = false;
  std::vector<std::string> renames;         ///< FROM=TO
  std::vector<std::string> initFrom, fresh; ///< files, and patterns of what they give nothing

  /// `begins`: the command makes weights, and --weights is no option of it.
  void add(CLI::App &app, bool begins = false);
  /// The command may begin with what weights of other models have.
  void addInitFrom(CLI::App &app);
  /// Finds the file that is meant. Throws UsageError for options that exclude each other, and
  /// UserError for a directory without weights.
  void check();
  /// What of this speaks of the reading. Throws UsageError.
  io::LoadOptions loading() const;
};

/// What the runtime may use, and what it draws from.
struct LimitOptions {
  std::string memoryLimitText;
  std::string foldMemoryText;
  std::string maxDepthText;
  std::string maxStepsText;
  std::string fibersText;
  std::string policyText = "depth";
  std::string forksText = "worth";
  std::string wavesText;
  std::string rowReuseText = "worth";
  uint64_t memoryLimit = 0;            ///< bytes; 0: the default
  std::optional<uint64_t> foldMemory;  ///< rt::SessionOptions::keepBytes
  std::optional<uint64_t> waves;       ///< rt::SessionOptions::waveBytes
  rt::When rowReuse = rt::When::Worth; ///< rt::SessionOptions::rowReuse
  std::string shareRowsText = "worth";
  rt::When shareRows = rt::When::Worth; ///< rt::SessionOptions::shareRows
  std::string recomputeText = "worth";
  rt::When recompute = rt::When::Worth;     ///< rt::SessionOptions::recompute
  int64_t maxDepth = 0;                     ///< calls; 0: the default
  int64_t maxSteps = 0;                     ///< calls; 0: the default
  int64_t fibers = 0;                       ///< stacks; 0: the default
  rt::Policy policy = rt::Policy::Depth;    ///< rt::SessionOptions::policy
  rt::Forking forking = rt::Forking::Worth; ///< rt::SessionOptions::forking
  bool hostile = false;                     ///< rt::SessionOptions::hostile
  uint64_t sampleSeed = 0;                  ///< rt::SessionOptions::sampleSeed

  void add(CLI::App &app);
  /// Reads the texts, and tells the model that is compiled for these limits. Throws UsageError.
  void check(ModelOptions &model);
};

/// How many instances at a time, on how many threads.
struct BatchOptions {
  std::string batchText = "64";
  std::string threadsText = "1";
  int64_t batch = 0;
  unsigned threads = 0;

  void add(CLI::App &app);
  /// Reads the texts. Throws UsageError.
  void check();
};

/// `--format` of a command that reports: for people, or json (docs/reports.md).
struct FormatOption {
  std::string people = "text"; ///< what the form for people is called
  std::string format = people;

  void add(CLI::App &app);
  /// Throws UsageError for a form that there is none of.
  bool json() const;
};

/// Adds an option for the seed of random numbers, any 64 bits.
CLI::Option *addSeed(CLI::App &app, const std::string &name, uint64_t &seed,
                     const std::string &meaning);

/// The dims of `--dim`. Throws UsageError for what is not NAME=NUMBER, or a name given twice.
std::map<std::string, int64_t> parseDims(const std::vector<std::string> &texts);

/// `4096`, `64K`, `10M`, `2G` (powers of 1024) in bytes. Throws UsageError naming the option.
uint64_t parseBytes(const std::string &option, const std::string &text);
/// What --target-cache says, such as `L1=48K,L2=2M`; 0 for what it does not give. Throws
/// UsageError.
rt::CacheSizes parseTargetCache(const std::string &text);
constexpr const char *kTargetCacheHelp =
    "plan for caches of these sizes, such as L1=48K,L2=2M; changes no bit (default: those of this "
    "machine for host, else what such processors mostly have)";

/// Positive numbers of an option such as `--batch 1,8,64`. Throws UsageError naming the option.
std::vector<int64_t> parseNumbers(const std::string &option, const std::string &text);

/// A number from 0 of an option. Throws UsageError naming the option.
int64_t parseCount(const std::string &option, const std::string &text);

/// One positive number of an option. Throws UsageError naming the option.
int64_t parseNumber(const std::string &option, const std::string &text);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_OPTIONS_H
