// Weights of what is compiled.
#include "runtime/api/weights.h"
#include "runtime/api/tensors.h"

#include "runtime/fit/pretrained.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace sheaf::api {

namespace {

/// Null for what no parameter can be made of.
const io::FileType *fileTypeOf(DLDataType type) {
  static constexpr struct {
    uint8_t code, bits;
    const char *name;
  } kTypes[] = {{kDLFloat, 32, "F32"},   {kDLFloat, 64, "F64"}, {kDLFloat, 16, "F16"},
                {kDLBfloat, 16, "BF16"}, {kDLInt, 32, "I32"},   {kDLInt, 64, "I64"},
                {kDLBool, 8, "BOOL"}};
  const auto *found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto &known) {
    return known.code == type.code && known.bits == type.bits && type.lanes == 1;
  });
  return found == std::end(kTypes) ? nullptr : io::findFileType(found->name);
}

/// The elements of a tensor of any strides, row by row.
std::vector<uint8_t> gather(const DLTensor &tensor, size_t elements, size_t bytes) {
  std::vector<uint8_t> out(elements * bytes);
  auto axes = static_cast<size_t>(tensor.ndim);
  std::vector<int64_t> index(axes);
  const uint8_t *data = dataOf(tensor);
  int64_t at = 0;
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(out.data() + i * bytes, data + at * static_cast<int64_t>(bytes), bytes);
    for (size_t axis = axes; axis-- > 0;) {
      at += tensor.strides[axis];
      if (++index[axis] < tensor.shape[axis])
        break;
      at -= tensor.strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

} // namespace

Weights::Weights(const sheaf_compile_options &options) : seed_(options.seed) {
  if (options.weights && options.tensor_count)
    throw Invalid("options has weights and tensors");
  if (options.weights)
    file_.reset(
        fromArguments([&] { return new io::WeightFile(io::WeightFile::open(options.weights)); }));
  for (const char *rename : array(options.renames, options.rename_count, "renames"))
    loading_.renames.push_back(
        fromArguments([&] { return io::parseRename(&given(rename, "a rename")); }));
  loading_.stop = tokenOf(options.stop);
  if (!options.tensor_count)
    return;
  file_ = std::make_unique<io::WeightFile>();
  file_->name = "options.tensors";
  for (const sheaf_named_tensor &tensor : array(options.tensors, options.tensor_count, "tensors"))
    add(tensor);
}

void Weights::add(const sheaf_named_tensor &named) {
  std::string name = &given(named.name, "a tensor's name");
  const DLTensor &tensor = given(named.tensor, ("tensor '" + name + "'").c_str());
  for (const io::FileTensor &other : file_->tensors)
    if (other.name == name)
      throw Invalid("tensor '" + name + "' is given twice");
  io::FileTensor added{name, fileTypeOf(tensor.dtype), {}, {}};
  if (!added.type)
    throw Invalid("tensor '" + name + "' has elements of a type that no weight is made of");
  checkAxes(tensor, static_cast<size_t>(std::max(tensor.ndim, 0)));
  size_t elements = 1;
  bool dense = true;
  for (int32_t axis = tensor.ndim; axis-- > 0;) {
    int64_t extent = tensor.shape[axis];
    dense &=
        !tensor.strides || extent == 1 || tensor.strides[axis] == static_cast<int64_t>(elements);
    if (extent < 0 || __builtin_mul_overflow(elements, static_cast<size_t>(extent), &elements) ||
        elements > size_t(1) << 40)
      throw Invalid("tensor '" + name + "' is too large");
  }
  added.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  auto bytes = static_cast<size_t>(added.type->bytes);
  if (elements > 0 && !dense)
    added.data = gathered_.emplace_back(gather(tensor, elements, bytes));
  else if (elements > 0)
    added.data = {dataOf(tensor), elements * bytes};
  file_->tensors.push_back(std::move(added));
}

void Weights::bind(compile::Request &request) const {
  if (!file_)
    return;
  request.weights = file_->name;
  request.weightConstants =
      fromArguments([&] { return io::storedConstants(file_->name, file_->metadata); });
  // What was saved here says itself what it was made with.
  if (!file_->metadata.contains(io::kModelKey))
    request.weightConfig = fromArguments([&] { return io::ModelConfig::beside(file_->name); });
  request.weightDims = fromArguments([&] { return io::storedDims(file_->name, file_->metadata); });
}

void Weights::set(rt::Session &session, const compile::Answer &compiled,
                  std::vector<compile::Finding> &findings) const {
  if (!file_)
    return fromArguments([&] { session.initParams(seed_); });
  io::LoadOptions loading = loading_;
  loading.storedNames = compiled.storedNames;
  loading.useAll = true;
  io::LoadedWeights loaded = fromArguments(
      [&] { return fit::setWeights(session, *file_, compiled.vocabularies, loading); });
  auto tell = [&](compile::Finding::Severity severity, const char *word, std::string message) {
    compile::Finding &finding = findings.emplace_back();
    finding.severity = severity;
    finding.message = std::move(message);
    finding.text = std::string(word) + ": " + finding.message + "\n";
  };
  if (!loaded.unused.empty())
    tell(compile::Finding::Warning, "warning",
         file_->name + " has tensors that no parameter takes: " + io::firstOf(loaded.unused));
  if (!loaded.converted.empty())
    tell(compile::Finding::Note, "note", file_->name + ": " + loaded.conversionText());
}

} // namespace sheaf::api
