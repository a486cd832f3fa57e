#include "runtime/io/weights.h"

#include "runtime/io/checksum.h"
#include "runtime/io/json.h"
#include "runtime/io/types.h"
#include "runtime/io/weight_shards.h"
#include "runtime/io/weights_path.h"
#include "runtime/model/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace sheaf::io {

using rt::DType;

static std::string fileOf(const FileTensor &tensor) {
  return tensor.shard.empty() ? "the file" : tensor.shard;
}

static std::string paramType(const rt::ParamDesc &param) {
  return fmt::format("{}[{}]", dtypeName(param.dtype), fmt::join(param.shape, ", "));
}

std::string NonFinite::message() const {
  std::string what;
  if (nan)
    what = fmt::format("{} NaN", nan);
  if (infinite)
    what += fmt::format("{}{} infinite", nan ? " and " : "", infinite);
  return fmt::format("'{}' has {} value{}, the first at [{}]", param, what,
                     nan + infinite == 1 ? "" : "s", fmt::join(first, ", "));
}

std::string firstOf(const std::vector<std::string> &names, size_t most) {
  if (names.size() <= most + 1)
    return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} others", fmt::join(names.begin(), names.begin() + most, ", "),
                     names.size() - most);
}

/// `a=1,b=2`: what stands in metadata for numbers that have names.
template <typename Number>
static std::string textOfNumbers(const std::map<std::string, Number> &numbers) {
  std::string text;
  for (const auto &[name, value] : numbers)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

/// What textOfNumbers() wrote. `parse` takes one number, `what` has the text.
template <typename Number, typename Parse>
static std::map<std::string, Number> numbersOf(const std::string &text, const std::string &what,
                                               Parse parse) {
  std::map<std::string, Number> numbers;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    size_t equals = one.find('=');
    Number value = 0;
    if (equals == 0 || equals == std::string_view::npos || !parse(one.substr(equals + 1), value))
      throw UserError(fmt::format("{} are not NAME=NUMBER, but {}", what, quoted(text, 80)));
    numbers[std::string(one.substr(0, equals))] = value;
  }
  return numbers;
}

/// What stands in the metadata under a key, as `parse` reads it.
template <typename Parse>
static auto storedNumbers(const std::string &path,
                          const std::map<std::string, std::string> &metadata, const char *key,
                          Parse parse) {
  auto it = metadata.find(key);
  return parse(it == metadata.end() ? std::string() : it->second,
               fmt::format("{}: its metadata '{}'", path, key));
}

std::string dimsText(const std::map<std::string, int64_t> &dims) { return textOfNumbers(dims); }

std::map<std::string, int64_t> storedDims(const std::string &path,
                                          const std::map<std::string, std::string> &metadata) {
  auto parse = [](const std::string &text, const std::string &what) {
    return numbersOf<int64_t>(text, what, [](std::string_view number, int64_t &value) {
      return parseInteger(number, value) && value > 0;
    });
  };
  return storedNumbers(path, metadata, kDimsKey, parse);
}

std::string constantsText(const std::map<std::string, double> &constants) {
  return textOfNumbers(constants);
}

std::map<std::string, double> parseConstants(const std::string &text, const std::string &what) {
  return numbersOf<double>(text, what, [](std::string_view number, double &value) {
    return parseDouble(number, value) && std::isfinite(value);
  });
}

std::map<std::string, double> storedConstants(const std::string &path,
                                              const std::map<std::string, std::string> &metadata) {
  return storedNumbers(path, metadata, kConstantsKey, parseConstants);
}

WeightFile WeightFile::open(const std::string &given) {
  WeightFile file;
  std::string path = file.name = weightsFile(given);
  if (isShardIndex(path)) {
    file.mapped = openShards(path);
    for (const SafetensorsFile &shard : file.mapped) {
      for (FileTensor tensor : shard.tensors()) {
        tensor.shard = shard.name().substr(shard.name().rfind('/') + 1);
        file.tensors.push_back(std::move(tensor));
      }
      file.metadata.insert(shard.metadata().begin(), shard.metadata().end());
    }
    return file;
  }
  file.mapped.push_back(SafetensorsFile::open(path));
  file.metadata = file.mapped[0].metadata();
  file.tensors = file.mapped[0].tensors();
  if (!file.metadata.contains(kStepsKey))
    return file;
  auto updates = file.metadata.find(kAveragesKey);
  bool averaged = updates != file.metadata.end() && updates->second != "0";
  std::set<std::string> all;
  for (const FileTensor &tensor : file.tensors)
    all.insert(tensor.name);
  std::vector<FileTensor> weights;
  for (FileTensor &tensor : file.tensors) {
    size_t part = kWeight;
    for (size_t other = kMean; other < kCheckpointParts; ++other)
      if (tensor.name.starts_with(kPartPrefixes[other]))
        part = other;
    if (part == kAverage)
      tensor.name.erase(0, std::strlen(kPartPrefixes[kAverage]));
    bool hasAverage = averaged && all.contains(kPartPrefixes[kAverage] + tensor.name);
    if ((part == kWeight && !hasAverage) || (part == kAverage && averaged))
      weights.push_back(std::move(tensor));
  }
  file.tensors = std::move(weights);
  return file;
}

namespace {

/// Which tensor each parameter takes, and what is wrong with that.
class WeightMatch {
public:
  WeightMatch(const WeightFile &file, const rt::Model &model, const LoadOptions &options)
      : file_(file), model_(model), options_(options), tensors(model.params.size()) {
    match();
    compare();
  }

  /// Throws UserError unless everything fits.
  void require() const {
    std::string name = model_.name.empty() ? "" : " '" + model_.name + "'";
    if (nothingFits())
      throw PlacedError(
          {file_.name},
          fmt::format("of another model: it has none of the {} of the model{} ({}), but {}{}",
                      plural(static_cast<int64_t>(wanted_), "parameter"), name,
                      firstOf(missing_, 3), unused.empty() ? "nothing" : firstOf(unused, 3),
                      unused.empty()
                          ? ""
                          : "; " + options_.renameTerm + " FROM=TO takes tensors by other names"));
    std::string problems = ambiguous_;
    problems += lines("missing", options_.partial ? Lines() : missing_);
    problems += lines("another shape", shapes_) + lines("another type", types_);
    bool strict = options_.strict && !unused.empty();
    if (problems.empty() && !strict)
      return;
    // What may be a missing one by another name.
    if (strict || (!missing_.empty() && !options_.partial))
      problems += lines("not in the model", unused);
    std::string why = fmt::format("does not fit the model{}:{}{}", name, problems, advice_);
    throw PlacedError({file_.name}, why, file_.name + " " + why);
  }

private:
  using Lines = std::vector<std::string>;
  const WeightFile &file_;
  const rt::Model &model_;
  const LoadOptions &options_;
  size_t wanted_ = 0;
  std::string ambiguous_, advice_;
  Lines missing_, shapes_, types_;

public:
  std::vector<const FileTensor *> tensors; ///< by parameter
  Lines unused;
  std::vector<std::string> unloaded;

private:
  bool nothingFits() const {
    return wanted_ > 0 && missing_.size() == wanted_ && ambiguous_.empty();
  }

  static std::string lines(const char *what, const Lines &found) {
    constexpr size_t most = 8;
    std::string text;
    for (size_t i = 0; i < found.size() && (i < most || found.size() == most + 1); ++i)
      text += fmt::format("\n  {}: {}", what, found[i]);
    if (found.size() > most + 1)
      text += fmt::format("\n  {}: {} more", what, found.size() - most);
    return text;
  }

  void match() {
    std::map<std::string, const FileTensor *> byName;
    for (const FileTensor &tensor : file_.tensors) {
      std::string name = renamed(tensor.name, options_.renames);
      auto [it, isNew] = byName.emplace(name, &tensor);
      if (!isNew)
        ambiguous_ += fmt::format("\n  twice: {}: it is '{}' and '{}' of the file", name,
                                  it->second->name, tensor.name);
    }
    std::set<const FileTensor *> taken;
    for (size_t i = 0; i < model_.params.size(); ++i) {
      const rt::ParamDesc &param = model_.params[i];
      if (param.synthetic)
        continue;
      auto it = byName.find(param.name);
      auto stored = options_.storedNames.find(param.name);
      if (it == byName.end() && stored != options_.storedNames.end())
        for (const std::string &other : stored->second)
          if (it = byName.find(other); it != byName.end())
            break;
      bool fresh = matchesAny(param.name, options_.fresh);
      if (it != byName.end())
        taken.insert(it->second);
      wanted_ += !fresh;
      if (it != byName.end() && !fresh) {
        tensors[i] = it->second;
        continue;
      }
      unloaded.push_back(param.name);
      if (!fresh)
        missing_.push_back(fmt::format("{}: {}{}", param.name, paramType(param),
                                       stored == options_.storedNames.end()
                                           ? ""
                                           : ", or called " + firstOf(stored->second, 3)));
    }
    for (const FileTensor &tensor : file_.tensors)
      if (!taken.contains(&tensor))
        unused.push_back(fmt::format("{}: {}", tensor.name, tensor.typeName()));
  }

  void compare() {
    std::map<std::string, std::vector<int64_t>> shapes;
    std::vector<uint8_t> converted;
    for (size_t i = 0; i < model_.params.size(); ++i) {
      const rt::ParamDesc &param = model_.params[i];
      const FileTensor *tensor = tensors[i];
      if (!tensor)
        continue;
      std::vector<int64_t> shape = param.shape;
      shapes[param.name] = tensor->shape;
      if (auto words = options_.words.find(param.name);
          words != options_.words.end() && !tensor->shape.empty()) {
        shape.at(0) = words->second.fileRows;
        shapes[param.name][0] = param.shape[0];
      }
      if (tensor->shape != shape) {
        shapes_.push_back(fmt::format("{}: {} in the model, {} in {}", param.name, paramType(param),
                                      tensor->typeName(), fileOf(*tensor)));
        continue;
      }
      // Floating-point weights convert whatever their values are; only the rest is worth a trial.
      bool isReal =
          param.dtype == DType::F32 || param.dtype == DType::BF16 || param.dtype == DType::F16;
      bool fromReal = std::strchr(tensor->type->name, 'F') && tensor->type->bytes > 1;
      if (isReal && fromReal)
        continue;
      if (std::optional<std::string> reason = convertElements(*tensor, param.dtype, converted))
        types_.push_back(fmt::format("{}: {} in the model{}: {}", param.name, paramType(param),
                                     tensor->shard.empty() ? "" : ", but of " + tensor->shard,
                                     *reason));
    }
    if (!shapes_.empty() && options_.adviseShapes)
      advice_ = options_.adviseShapes(shapes);
  }
};

/// Rows of a table to where the parameter has their words.
std::vector<uint8_t> rowsByWord(const WordRows &words, std::span<const uint8_t> table,
                                std::vector<uint8_t> values) {
  size_t rowBytes = words.of.empty() ? 0 : values.size() / words.of.size();
  for (size_t row = 0; row < words.of.size(); ++row)
    if (words.of[row] >= 0)
      std::copy_n(table.data() + static_cast<size_t>(words.of[row]) * rowBytes, rowBytes,
                  values.data() + row * rowBytes);
  return values;
}

} // namespace

static void findNonFiniteIn(const rt::ParamDesc &param, std::span<const uint8_t> bytes,
                            std::vector<NonFinite> &found) {
  if (param.dtype != DType::F32 && param.dtype != DType::BF16 && param.dtype != DType::F16)
    return;
  size_t size = static_cast<size_t>(rt::dtypeBytes(param.dtype));
  NonFinite report;
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    float value = 0;
    if (param.dtype == DType::F32) {
      std::memcpy(&value, bytes.data() + i * size, size);
    } else {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * size, size);
      value = param.dtype == DType::F16 ? rt::f16ToFloat(bits) : rt::bf16ToFloat(bits);
    }
    if (std::isfinite(value))
      continue;
    if (report.nan + report.infinite == 0) {
      int64_t rest = static_cast<int64_t>(i);
      report.first.resize(param.shape.size());
      for (size_t axis = param.shape.size(); axis-- > 0; rest /= param.shape[axis])
        report.first[axis] = rest % param.shape[axis];
    }
    ++(std::isnan(value) ? report.nan : report.infinite);
  }
  if (report.nan + report.infinite == 0)
    return;
  report.param = param.name;
  found.push_back(std::move(report));
}

std::string LoadedWeights::conversionText() const {
  std::string text;
  for (const auto &[types, count] : converted)
    text += fmt::format("{}{} {} converted, {}", text.empty() ? "" : "; ", plural(count, "tensor"),
                        count == 1 ? "is" : "are", types);
  return text;
}

void refuseIdle(const LoadOptions &options, const std::vector<size_t> &idle,
                const std::string &file) {
  if (options.useAll && !idle.empty())
    throw UserError("the rename " + options.renames[idle[0]].text() + " is for no tensor of " +
                    file);
}

LoadedWeights loadWeights(const WeightFile &file, const rt::Model &model, const SetParam &set,
                          const LoadOptions &options) {
  LoadedWeights result;
  std::set<size_t> deciding;
  for (const FileTensor &tensor : file.tensors)
    if (std::optional<size_t> rename = renameOf(tensor.name, options.renames))
      deciding.insert(*rename);
  for (size_t i = 0; i < options.renames.size(); ++i)
    if (!deciding.contains(i))
      result.idleRenames.push_back(i);
  refuseIdle(options, result.idleRenames, file.name);
  WeightMatch match(file, model, options);
  match.require();
  result.metadata = file.metadata;
  result.unused = std::move(match.unused);
  result.unloaded = std::move(match.unloaded);
  for (size_t i = 0; i < model.params.size(); ++i) {
    const rt::ParamDesc &param = model.params[i];
    if (!match.tensors[i])
      continue;
    if (options.stop.stop_requested())
      throw CheckStopped();
    std::vector<uint8_t> converted; // no longer than it is needed: it may be large
    if (std::optional<std::string> reason =
            convertElements(*match.tensors[i], param.dtype, converted))
      throw PlacedError({file.name}, fmt::format("weight '{}': {}", param.name, *reason));
    if (std::string_view from = match.tensors[i]->type->name; from != fileTypeOf(param.dtype)->name)
      ++result.converted[fmt::format("{} to {}", from, dtypeName(param.dtype))];
    if (auto words = options.words.find(param.name); words != options.words.end())
      converted = rowsByWord(words->second, converted, options.initial(i));
    if (options.findNonFinite)
      findNonFiniteIn(param, converted, result.nonFinite);
    set(i, converted);
    for (const SafetensorsFile &mapped : file.mapped)
      mapped.forget(match.tensors[i]->data);
  }
  return result;
}

void saveWeights(const std::string &path, const rt::Model &model,
                 const std::function<rt::TensorView(size_t index)> &get,
                 const std::map<std::string, std::string> &metadata) {
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < model.params.size(); ++i) {
    if (model.params[i].synthetic)
      continue;
    rt::TensorView view = get(i);
    tensors.push_back({model.params[i].name, view.dtype, view.shape, view.rowMajor()});
  }
  std::map<std::string, std::string> all = metadata;
  all.emplace("format", "pt");
  writeSafetensors(path, tensors, all);
}

std::map<std::string, std::string> modelMetadata(const rt::Model &model,
                                                 const Vocabularies &vocabularies) {
  std::map<std::string, std::string> metadata = {{kModelKey, model.name}};
  if (!model.dims.empty())
    metadata[kDimsKey] = dimsText(model.dims);
  if (!model.constants.empty())
    metadata[kConstantsKey] = constantsText(model.constants);
  if (!vocabularies.all().empty())
    metadata[kVocabKey] = vocabularies.hashes();
  return metadata;
}

/// The hash of each vocabulary, by name, from Vocabularies::hashes().
static std::map<std::string, std::string> hashesByName(const std::string &text) {
  std::map<std::string, std::string> hashes;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    size_t equals = part.find('=');
    if (equals == std::string::npos)
      hashes[""] = part;
    else
      hashes[part.substr(0, equals)] = part.substr(equals + 1);
    begin = end + 1;
  }
  return hashes;
}

void checkVocabulary(const std::string &weightsPath,
                     const std::map<std::string, std::string> &metadata,
                     const Vocabularies &vocabularies) {
  auto it = metadata.find(kVocabKey);
  if (it == metadata.end())
    return;
  std::map<std::string, std::string> stored = hashesByName(it->second);
  std::string now = vocabularies.hashes();
  // A function may read, and make, tokens of some of the vocabularies only.
  bool differs = std::any_of(
      vocabularies.all().begin(), vocabularies.all().end(), [&](const auto &vocabulary) {
        auto before = stored.find(vocabulary.first);
        return before != stored.end() && before->second != vocabulary.second.hash();
      });
  if (!differs)
    return;
  throw PlacedError({weightsPath},
                    fmt::format("these weights were made with another vocabulary: {} is stored "
                                "with them, {} is in use",
                                quoted(it->second, 200), quoted(now, 200)));
}

} // namespace sheaf::io
