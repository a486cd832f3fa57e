#include "runtime/io/weights.h"

#include "runtime/convert.h"
#include "runtime/io/types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace sheaf::io {

using rt::DType;

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

/// Every way in which the file does not fit the model, one line each.
static std::string mismatches(const SafetensorsFile &file, const rt::Model &model) {
  std::string missing, shapes, extra;
  std::set<std::string> known;
  for (const rt::ParamDesc &param : model.params) {
    if (param.synthetic)
      continue;
    known.insert(param.name);
    const FileTensor *tensor = file.find(param.name);
    if (!tensor)
      missing += fmt::format("\n  missing: {}: {}", param.name, paramType(param));
    else if (tensor->shape != param.shape)
      shapes += fmt::format("\n  another shape: {}: {} in the model, {} in the file", param.name,
                            paramType(param), tensor->typeName());
  }
  for (const FileTensor &tensor : file.tensors())
    if (!known.count(tensor.name))
      extra += fmt::format("\n  not in the model: {}: {}", tensor.name, tensor.typeName());
  return missing + shapes + extra;
}

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

LoadedWeights loadWeights(const std::string &path, const rt::Model &model, const SetParam &set,
                          bool findNonFinite) {
  SafetensorsFile file = SafetensorsFile::open(path);
  std::string problems = mismatches(file, model);
  std::vector<uint8_t> converted;
  for (const rt::ParamDesc &param : model.params) {
    const FileTensor *tensor = param.synthetic ? nullptr : file.find(param.name);
    if (!tensor || tensor->shape != param.shape)
      continue;
    // Floating-point weights convert whatever their values are; only the rest is worth a trial.
    bool isReal =
        param.dtype == DType::F32 || param.dtype == DType::BF16 || param.dtype == DType::F16;
    bool fromReal = std::strchr(tensor->type->name, 'F') && tensor->type->bytes > 1;
    if (isReal && fromReal)
      continue;
    if (std::optional<std::string> reason = convertElements(*tensor, param.dtype, converted))
      problems += fmt::format("\n  another type: {}: {} in the model: {}", param.name,
                              paramType(param), *reason);
  }
  if (!problems.empty())
    throw UserError(fmt::format("{} does not fit the model{}:{}", path,
                                model.name.empty() ? "" : " '" + model.name + "'", problems));
  LoadedWeights result;
  result.metadata = file.metadata();
  for (size_t i = 0; i < model.params.size(); ++i) {
    const rt::ParamDesc &param = model.params[i];
    if (param.synthetic)
      continue;
    const FileTensor &tensor = *file.find(param.name);
    if (std::optional<std::string> reason = convertElements(tensor, param.dtype, converted))
      throw UserError(fmt::format("{}: weight '{}': {}", path, param.name, *reason));
    if (findNonFinite)
      findNonFiniteIn(param, converted, result.nonFinite);
    set(i, converted);
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
    TensorToWrite tensor{model.params[i].name, view.dtype, view.shape, {}};
    tensor.data.resize(static_cast<size_t>(view.elements() * rt::dtypeBytes(view.dtype)));
    view.copyTo(tensor.data.data());
    tensors.push_back(std::move(tensor));
  }
  std::map<std::string, std::string> all = metadata;
  all.emplace("format", "pt");
  writeSafetensors(path, tensors, all);
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
  throw UserError(fmt::format("{}: these weights were made with another vocabulary: {} is stored "
                              "with them, {} is in use",
                              weightsPath, quoted(it->second, 200), quoted(now, 200)));
}

} // namespace sheaf::io
