//===- fields.h - The numbered fields of everything in a file ---*- C++ -*-===//
//
// Read and written by the same lines (encode.h). To add a field, take a number that its message
// never had; std::optional if older files lack it, with kIgnorable if older readers may go on
// without.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_ARTEFACT_FIELDS_H
#define SHEAF_RUNTIME_ARTEFACT_FIELDS_H

#include "runtime/artefact/encode.h"
#include "runtime/artefact/format.h"
#include "runtime/cpu/kernel_code.h"

#include <type_traits>
#include <utility>

namespace sheaf::rt {

constexpr DType lastEnumerator(DType) { return DType::Bool; }
constexpr TypeKind lastEnumerator(TypeKind) { return TypeKind::Data; }
constexpr WeightUse::Kind lastEnumerator(WeightUse::Kind) { return WeightUse::PanelsByView; }
constexpr WeightForm lastEnumerator(WeightForm) { return WeightForm::Bf16; }
constexpr RootDesc::Kind lastEnumerator(RootDesc::Kind) { return RootDesc::Forks; }
constexpr RecordWord::Kind lastEnumerator(RecordWord::Kind) { return RecordWord::List; }
constexpr RowSource::Kind lastEnumerator(RowSource::Kind) { return RowSource::Output; }
constexpr BackwardWord::Kind lastEnumerator(BackwardWord::Kind) { return BackwardWord::Extent; }
constexpr WeightGradient::Kind lastEnumerator(WeightGradient::Kind) {
  return WeightGradient::Scatter;
}

template <typename Archive> void fields(Archive &a, TypeDesc &x) {
  a(1, "kind", x.kind);
  a(2, "dtype", x.dtype);
  a(3, "shape", x.shape);
  a(4, "dim_names", x.dimNames);
  a(5, "is_token", x.isToken);
  a(6, "vocabulary", x.vocab);
  a(7, "children", x.children);
  a(8, "data", x.data);
  a(9, "length", x.length);
}
template <typename Archive> void fields(Archive &a, CtorDesc &x) {
  a(1, "name", x.name);
  a(2, "field_names", x.fieldNames);
  a(3, "field_types", x.fieldTypes);
}
template <typename Archive> void fields(Archive &a, DataDesc &x) {
  a(1, "name", x.name);
  a(2, "constructors", x.ctors);
}
template <typename Archive> void fields(Archive &a, TypeTable &x) {
  a(1, "types", x.types);
  a(2, "data", x.data);
}
template <typename Archive> void fields(Archive &a, ParamDesc &x) {
  a(1, "name", x.name);
  a(2, "dtype", x.dtype);
  a(3, "shape", x.shape);
  a(4, "init", x.init);
  a(5, "init_arguments", x.initArgs);
  a(6, "id", x.id);
  a(7, "synthetic", x.synthetic);
}
template <typename Archive> void fields(Archive &a, PackSegment &x) {
  a(1, "param", x.param);
  a(2, "k_begin", x.kBegin);
  a(3, "k_end", x.kEnd);
  a(4, "transposed", x.transposed);
}
template <typename Archive> void fields(Archive &a, PackView &x) {
  a(1, "segments", x.segments);
  a(2, "column", x.column);
}
template <typename Archive> void fields(Archive &a, WeightUse &x) {
  a(1, "kind", x.kind);
  a(2, "param", x.param);
  a(3, "views", x.views);
  a(4, "width", x.width);
  a(5, "lanes", x.lanes);
  a(6, "vectors", x.vectors);
  a(7, "form", x.form);
  a(8, "depth_multiple", x.depthMultiple);
}
template <typename Archive> void fields(Archive &a, RecordWord &x) {
  a(1, "kind", x.kind);
  a(2, "name", x.name);
  a(3, "shape", x.shape);
  a(4, "dtype", x.dtype);
}
template <typename Archive> void fields(Archive &a, FlopTerm &x) {
  a(1, "coefficient", x.coefficient);
  a(2, "extent_words", x.extentWords);
}
template <typename Archive> void fields(Archive &a, WordTerm &x) {
  a(1, "coefficient", x.coefficient);
  a(2, "words", x.words);
}
template <typename Archive> void fields(Archive &a, RecordTensor &x) {
  a(1, "dtype", x.dtype);
  a(2, "extents", x.extents);
}
template <typename Archive> void fields(Archive &a, KernelDesc &x) {
  a(1, "name", x.name);
  a(2, "words", x.words);
  a(3, "layout", x.layout);
  a(4, "temporaries", x.temporaries);
  a(5, "flop", x.flop);
  a(6, "source", x.source);
  a(7, "deferred", x.deferred);
  a(8, "phase", x.phase);
  a(9, "family", x.family);
  a(10, "bytes", x.bytes);
  a(11, "joined", x.joined);
  a(12, "results", x.results);
  a(13, "result_rows", x.resultRows);
}
template <typename Archive> void fields(Archive &a, CpuKernel &x) {
  a(1, "weights", x.weights);
  a(2, "scratch_bytes", x.scratchBytes);
  a(3, "panels", x.panels);
  a(4, "serpentine", x.serpentine);
}
template <typename Archive> void fields(Archive &a, CpuCode &x) {
  a(1, "kernels", x.kernels);
  a(2, "tiles", x.tiles);
}
template <typename Archive> void fields(Archive &a, EntryDesc &x) {
  a(1, "name", x.name);
  a(2, "argument_names", x.argNames);
  a(3, "argument_types", x.argTypes);
  a(4, "result_type", x.resultType);
  a(5, "emits", x.emits);
}
template <typename Archive> void fields(Archive &a, RootDesc &x) {
  a(1, "kind", x.kind);
  a(2, "type", x.type);
}
template <typename Archive> void fields(Archive &a, RowSource &x) {
  a(1, "kind", x.kind);
  a(2, "index", x.index);
}
template <typename Archive> void fields(Archive &a, BackwardWord &x) {
  a(1, "kind", x.kind);
  a(2, "source", x.source);
  a(3, "extent", x.extent);
}
template <typename Archive> void fields(Archive &a, ArgumentGradient &x) {
  a(1, "word", x.word);
  a(2, "tensor", x.tensor);
  a(3, "gradient", x.gradient);
}
template <typename Archive> void fields(Archive &a, WeightGradient &x) {
  a(1, "kind", x.kind);
  a(2, "param", x.param);
  a(3, "left", x.left);
  a(4, "right", x.right);
  a(5, "rows", x.rows);
  a(6, "row_begin", x.rowBegin);
  a(7, "row_count", x.rowCount);
  a(8, "column_begin", x.columnBegin);
  a(9, "column_count", x.columnCount);
  a(10, "index_type", x.indexType);
}
template <typename Archive> void fields(Archive &a, KernelGradient &x) {
  a(1, "kernel", x.kernel);
  std::vector<uint32_t> wanted(x.wanted.begin(), x.wanted.end());
  a(2, "wanted", wanted);
  x.wanted.assign(wanted.begin(), wanted.end());
  a(3, "words", x.words);
  a(4, "outputs", x.outputs);
  a(5, "temporaries", x.temporaries);
  a(6, "arguments", x.arguments);
  a(7, "weights", x.weights);
}
/// What a model for training has beside.
struct ModelTraining {
  bool f16 = false, inputGradients = false;
  std::vector<KernelGradient> gradients;
};
template <typename Archive> void fields(Archive &a, ModelTraining &x) {
  a(1, "f16", x.f16);
  a(2, "gradients", x.gradients);
  a(3, "input_gradients", x.inputGradients);
}
inline std::optional<ModelTraining> trainingOf(const Model &x) {
  if (!x.training)
    return std::nullopt;
  return ModelTraining{x.f16, x.inputGradients, x.gradients};
}
inline void setTraining(Model &x, std::optional<ModelTraining> training) {
  x.training = training.has_value();
  if (!training)
    return;
  x.f16 = training->f16;
  x.inputGradients = training->inputGradients;
  x.gradients = std::move(training->gradients);
}
template <typename Archive> void fields(Archive &a, Model &x) {
  a(1, "name", x.name);
  a(2, "types", x.types);
  a(3, "params", x.params);
  a(4, "param_granules", x.paramGranules);
  a(5, "kernels", x.kernels);
  a(6, "entry", x.entry);
  a(7, "messages", x.messages);
  a(8, "chained_lists", x.chainedLists);
  a(9, "folded", x.folded);
  a(10, "reads", x.reads);
  a(11, "depth_bits", x.depthBits);
  a(12, "dims", x.dims);
  a(13, "read_places", x.readPlaces);
  a(14, "roots", x.roots);
  a(15, "roots_hold_all", x.rootsHoldAll);
  a(16, "further_stacks", x.furtherStacks);
  // Of models for training alone.
  std::optional<ModelTraining> training = trainingOf(x);
  a(17, "training", training);
  setTraining(x, std::move(training));
  std::optional<std::map<std::string, double>> constants;
  if (!x.constants.empty())
    constants = x.constants;
  a(18, "constants", constants);
  x.constants = constants.value_or(std::map<std::string, double>());
  std::optional<std::vector<int64_t>> columns;
  if (!x.messageColumns.empty())
    columns = x.messageColumns;
  a(19 | artefact::kIgnorable, "message_columns", columns);
  x.messageColumns = columns.value_or(std::vector<int64_t>());
}
template <typename Archive> void fields(Archive &a, CodeRelocation &x) {
  a(1, "at", x.at);
  a(2, "target", x.target);
}
template <typename Archive> void fields(Archive &a, CodeLayout &x) {
  a(1, "code_bytes", x.codeBytes);
  a(2, "constant_bytes", x.constantBytes);
  a(3, "address_bytes", x.addressBytes);
  a(4, "imports", x.imports);
  a(5, "relocations", x.relocations);
}
template <typename Archive> void fields(Archive &a, CacheSizes &x) {
  a(1, "l1", x.l1);
  a(2, "l2", x.l2);
}

} // namespace sheaf::rt

namespace sheaf::artefact {

template <typename Archive> void fields(Archive &a, Section &x) {
  a(1, "offset", x.offset);
  a(2, "bytes", x.bytes);
  a(3, "checksum", x.checksum);
}
template <typename Archive> void fields(Archive &a, Library &x) {
  a(1, "name", x.name);
  a(2, "version", x.version);
}
template <typename Archive> void fields(Archive &a, CodeSection &x) {
  a(1, "backend", x.backend);
  a(2, "form", x.form);
  a(3, "architecture", x.target.architecture);
  a(4, "cpu", x.target.cpu);
  a(5, "features", x.target.features);
  a(6, "caches", x.target.caches);
  a(7, "numerics", x.numerics);
  a(8, "libraries", x.libraries);
  a(9, "body", x.body);
  a(10, "code", x.code);
  a(11, "packed", x.packed);
}
template <typename Archive> void fields(Archive &a, VocabularyDesc &x) {
  a(1, "name", x.name);
  a(2, "size", x.size);
  a(3, "hash", x.hash);
  a(4, "text", x.text);
}
template <typename Archive> void fields(Archive &a, PackedRange &x) {
  a(1, "offset", x.offset);
  a(2, "bytes", x.bytes);
}
template <typename Archive> void fields(Archive &a, Functions &x) {
  a(1, "entry", x.entry);
  a(2, "fold_weights", x.foldWeights);
  a(3, "kernels", x.kernels);
}
/// All that a section of the form kImage says.
struct ImageFields {
  ImageBody &image;
  rt::CpuCode &code;
  uint64_t &frameBytes; ///< Model::frameBytes
};
template <typename Archive> void fields(Archive &a, ImageFields &x) {
  a(1, "layout", x.image.layout);
  a(2, "functions", x.image.functions);
  a(3, "kernels", x.code);
  a(4, "packed", x.image.packed);
  a(5, "serpentine", x.image.serpentine);
  a(6, "frame_bytes", x.frameBytes);
}
template <typename Archive> void fields(Archive &a, Description &x) {
  a(1, "producer", x.producer);
  a(2, "abi", x.abi);
  a(3, "model", x.model);
  a(4, "vocabularies", x.vocabularies);
  a(5, "sections", x.sections);
  a(6, "param_section", x.paramSection);
}

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_FIELDS_H
