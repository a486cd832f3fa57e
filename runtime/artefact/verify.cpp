// Everything that a session and the API take for granted of a model.
#include "runtime/artefact/artefact.h"

#include "runtime/artefact/encode.h"
#include "runtime/cpu/packing.h"
#include "runtime/model/members.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>
#include <optional>
#include <set>

namespace sheaf::artefact {

namespace {

using rt::Model;
using rt::TypeKind;

constexpr size_t kMostAxes = 64;
constexpr uint64_t kMostGranules = uint64_t(1) << 31;
/// Bounds that no real model comes near; with them, sums and products of a few of these numbers
/// need no care.
constexpr int64_t kMostExtent = int64_t(1) << 36;
constexpr int64_t kMostLanes = 4096;
constexpr uint64_t kMostScratch = uint64_t(1) << 36;
constexpr uint32_t kMostPanels = 1 << 20;
constexpr size_t kMostSegments = 4096;
constexpr uint64_t kMostFrame = uint64_t(1) << 32;
/// Parts of tuples inside of tuples.
constexpr uint64_t kMostParts = 1 << 16;
constexpr uint32_t kMostNesting = 256;

class Verifier {
public:
  explicit Verifier(const Description &d) : d_(d), model_(d.model) {}

  void run() {
    types();
    entry();
    roots();
    vocabularies();
    params();
    kernels();
    gradients();
    functions();
    packed();
  }

private:
  [[noreturn]] static void damaged(const std::string &field, const std::string &what) {
    throw ArtefactError(Refusal::Damaged, "damaged: field " + field + " " + what);
  }
  static std::string at(const std::string &list, size_t index) {
    return list + "[" + std::to_string(index) + "]";
  }

  /// Of the section that was taken.
  std::string body(const char *field) const { return at("sections", d_.taken) + ".body." + field; }

  void isType(uint32_t type, const std::string &field) const {
    if (type >= model_.types.types.size())
      damaged(field, "names a type that is not there");
  }

  /// Granules of a tensor, per-instance extents taken as 1.
  static uint64_t granules(const std::vector<int64_t> &shape, rt::DType dtype, int64_t least,
                           const std::string &field) {
    if (shape.size() > kMostAxes)
      damaged(field, "has too many axes");
    uint64_t total = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < least || shape[i] > kMostExtent)
        damaged(field, "has an extent of " + std::to_string(shape[i]));
      auto extent = static_cast<uint64_t>(std::max<int64_t>(shape[i], least < 0 ? 1 : 0));
      total *= i + 1 < shape.size()
                   ? extent
                   : static_cast<uint64_t>(rt::rowGranules(static_cast<int64_t>(extent), dtype));
      if (total > kMostGranules)
        damaged(field, "is too large");
    }
    return total;
  }

  void types() {
    const std::vector<rt::TypeDesc> &types = model_.types.types;
    for (size_t i = 0; i < types.size(); ++i) {
      const rt::TypeDesc &type = types[i];
      std::string field = at("model.types.types", i);
      for (uint32_t child : type.children)
        isType(child, field + ".children");
      if (type.kind == TypeKind::List && type.children.size() != 1)
        damaged(field + ".children", "are not those of a list");
      if (type.length) {
        if (type.kind != TypeKind::List || *type.length < -1 || *type.length > kMostExtent)
          damaged(field + ".length", "is none of a list");
        if (type.dimNames.size() != 1)
          damaged(field + ".dim_names", "do not name a length");
      }
      if (type.kind == TypeKind::Data && type.data >= model_.types.data.size())
        damaged(field + ".data", "names a data type that is not there");
      if (type.kind == TypeKind::Tensor) {
        granules(type.shape, type.dtype, -1, field + ".shape");
        if (type.dimNames.size() != type.shape.size())
          damaged(field + ".dim_names", "are not one for each extent");
      }
    }
    parts_.assign(types.size(), 0);
    for (uint32_t i = 0; i < types.size(); ++i)
      partsOf(i, 0);
    for (size_t i = 0; i < model_.types.data.size(); ++i) {
      const rt::DataDesc &data = model_.types.data[i];
      for (size_t c = 0; c < data.ctors.size(); ++c) {
        std::string field = at(at("model.types.data", i) + ".constructors", c);
        if (data.ctors[c].fieldNames.size() != data.ctors[c].fieldTypes.size())
          damaged(field + ".field_names", "are not one for each field");
        for (uint32_t type : data.ctors[c].fieldTypes)
          isType(type, field + ".field_types");
      }
    }
  }

  /// Tuples stand inside of each other by value: none may contain itself.
  uint64_t partsOf(uint32_t type, uint32_t nesting) {
    if (parts_[type])
      return parts_[type];
    const rt::TypeDesc &desc = model_.types.types[type];
    uint64_t parts = 1;
    if (nesting > kMostNesting)
      damaged(at("model.types.types", type), "is a tuple inside of itself, or nested too deeply");
    if (desc.kind == TypeKind::Tuple)
      for (uint32_t child : desc.children)
        if (parts += partsOf(child, nesting + 1); parts > kMostParts)
          damaged(at("model.types.types", type), "has too many parts");
    return parts_[type] = parts;
  }

  void entry() const {
    const rt::EntryDesc &entry = model_.entry;
    if (entry.argNames.size() != entry.argTypes.size())
      damaged("model.entry.argument_names", "are not one for each argument");
    for (uint32_t type : entry.argTypes)
      isType(type, "model.entry.argument_types");
    isType(entry.resultType, "model.entry.result_type");
    emits();
  }

  /// What an instance emits is put where the description says.
  void emits() const {
    const rt::EntryDesc &entry = model_.entry;
    const std::vector<std::string> &imports = d_.image.layout.imports;
    if (std::find(imports.begin(), imports.end(), "sheaf_emit") != imports.end() && !entry.emits)
      damaged("model.entry.emits", "is not there, but code emits");
    if (!entry.emits)
      return;
    isType(*entry.emits, "model.entry.emits");
    const std::vector<rt::TypeDesc> &types = model_.types.types;
    const rt::TypeDesc &both = types[entry.resultType];
    bool isPair = both.kind == TypeKind::Tuple && both.children.size() == 2;
    if (!isPair || types[both.children[1]].kind != TypeKind::List ||
        types[both.children[1]].children != std::vector<uint32_t>{*entry.emits})
      damaged("model.entry.result_type", "is not a result with the list of what is emitted");
  }

  void roots() const {
    if (model_.roots)
      for (size_t i = 0; i < model_.roots->size(); ++i)
        for (const rt::RootDesc &root : (*model_.roots)[i])
          isType(root.type, at("model.roots", i) + ".type");
  }

  /// Words of arguments need the vocabulary's size: a number beyond it would be a row that is not
  /// there.
  void vocabularies() const {
    std::set<std::string> known;
    for (size_t i = 0; i < d_.vocabularies.size(); ++i) {
      if (d_.vocabularies[i].size < 1 || d_.vocabularies[i].size > INT32_MAX)
        damaged(at("vocabularies", i) + ".size", "is " + std::to_string(d_.vocabularies[i].size));
      if (!known.insert(d_.vocabularies[i].name).second)
        damaged(at("vocabularies", i) + ".name", "is there twice");
    }
    std::vector<bool> reached = reachableTypes(model_.types, model_.entry.argTypes);
    for (size_t type = 0; type < reached.size(); ++type) {
      const rt::TypeDesc &desc = model_.types.types[type];
      bool token = desc.kind == TypeKind::Token || (desc.kind == TypeKind::Tensor && desc.isToken);
      if (reached[type] && token && !known.contains(desc.vocab))
        damaged("vocabularies", "lack that of " + io::tokenTypeName(desc.vocab));
    }
  }

  void params() const {
    if (model_.paramGranules >= kMostGranules)
      damaged("model.param_granules", "is too large");
    for (size_t i = 0; i < model_.params.size(); ++i) {
      const rt::ParamDesc &param = model_.params[i];
      if (param.id + granules(param.shape, param.dtype, 0, at("model.params", i) + ".shape") >
          model_.paramGranules)
        damaged(at("model.params", i) + ".id", "lies outside of the parameters");
    }
    for (uint32_t param : model_.folded)
      if (param >= model_.params.size())
        damaged("model.folded", "names a parameter that is not there");
    if (!model_.folded.empty() && !d_.image.functions.foldWeights)
      damaged(body("functions.fold_weights"), "is missing");
  }

  void kernels() const {
    uint32_t phases = 1;
    for (size_t i = 0; i < model_.kernels.size(); ++i) {
      kernel(model_.kernels[i], at("model.kernels", i));
      results(model_.kernels[i], model_.training && i >= model_.gradients.size(),
              at("model.kernels", i));
      code(rt::cpuCode(model_).kernels[i], at(body("kernels.kernels"), i));
      phases = std::max(phases, model_.kernels[i].phase + 1);
    }
    if (model_.depthBits > rt::depthBits(phases) ||
        model_.depthBits < rt::depthBits(rt::kMaxPhases))
      damaged("model.depth_bits", "is " + std::to_string(model_.depthBits));
    if (model_.frameBytes > kMostFrame)
      damaged(body("frame_bytes"), "is too large");
  }

  void kernel(const rt::KernelDesc &kernel, const std::string &field) const {
    uint64_t words = 0;
    for (size_t i = 0; i < kernel.layout.size(); ++i) {
      const rt::RecordWord &word = kernel.layout[i];
      if ((word.kind == rt::RecordWord::Out) != (i + 1 == kernel.layout.size()))
        damaged(at(field + ".layout", i) + ".kind", "is not where it belongs");
      if (word.kind == rt::RecordWord::List &&
          (i + 1 == kernel.layout.size() || kernel.layout[i + 1].kind != rt::RecordWord::Extent))
        damaged(at(field + ".layout", i), "is a list of no length");
      if (word.kind == rt::RecordWord::List &&
          std::any_of(word.shape.begin(), word.shape.end(), [](int64_t e) { return e < 0; }))
        damaged(at(field + ".layout", i) + ".shape", "is not known");
      if (word.kind == rt::RecordWord::Row || word.kind == rt::RecordWord::List)
        granules(word.shape, word.dtype, -1, at(field + ".layout", i) + ".shape");
      words += word.words();
    }
    if (words == 0 || words != kernel.words)
      damaged(field + ".words", "is " + std::to_string(kernel.words) + ", but the layout has " +
                                    std::to_string(words));
    terms(kernel.flop, kernel.words, field + ".flop");
    if (kernel.bytes)
      terms(*kernel.bytes, kernel.words, field + ".bytes");
    if (kernel.phase >= rt::kMaxPhases)
      damaged(field + ".phase", "is " + std::to_string(kernel.phase));
    if (kernel.family && (*kernel.family >= model_.kernels.size() ||
                          model_.kernels[*kernel.family].words != kernel.words))
      damaged(field + ".family", "names no kernel with the same records");
  }

  void code(const rt::CpuKernel &code, const std::string &field) const {
    if (code.scratchBytes > kMostScratch)
      damaged(field + ".scratch_bytes", "is too large");
    if (code.panels > kMostPanels)
      damaged(field + ".panels", "is too large");
    for (size_t i = 0; i < code.weights.size(); ++i)
      weight(code.weights[i], at(field + ".weights", i));
  }

  /// Of kernels that go back no one asks where the rows of results are.
  static void results(const rt::KernelDesc &kernel, bool goesBack, const std::string &field) {
    tensors(kernel.results, kernel.words, field + ".results");
    if (!goesBack && kernel.resultRows.size() != kernel.results.size())
      damaged(field + ".result_rows", "are not one for each result");
    for (const std::vector<uint32_t> &words : kernel.resultRows)
      for (uint32_t word : words)
        isWord(word, kernel.words, field + ".result_rows");
  }

  static void terms(const std::vector<rt::FlopTerm> &terms, uint32_t words,
                    const std::string &field) {
    for (const rt::FlopTerm &term : terms)
      for (uint32_t word : term.extentWords)
        if (word >= words)
          damaged(field, "counts by a word that is not there");
  }

  void weight(const rt::WeightUse &use, const std::string &field) const {
    if (use.kind == rt::WeightUse::Raw) {
      if (use.param >= model_.params.size())
        damaged(field + ".param", "names a parameter that is not there");
      return;
    }
    if (use.lanes < 1 || use.lanes > kMostLanes || use.vectors < 1 || use.vectors > kMostLanes ||
        use.depthMultiple < 1 || use.depthMultiple > kMostLanes || use.width < 0 ||
        use.width > kMostExtent || use.views.size() > kMostSegments ||
        (use.isBf16() && use.kind != rt::WeightUse::Panels))
      damaged(field, "has panels of no possible form");
    for (const rt::PackView &view : use.views) {
      if (view.column < 0 || view.column > kMostExtent || view.segments.size() > kMostSegments)
        damaged(field + ".views", "have columns that are not there");
      for (const rt::PackSegment &segment : view.segments)
        if (segment.param >= model_.params.size() || segment.kBegin < 0 ||
            segment.kEnd < segment.kBegin || segment.kEnd > kMostExtent)
          damaged(field + ".views", "have rows that are not there");
    }
  }

  /// What the backward pass takes for granted.
  void gradients() const {
    if (!model_.training)
      return;
    if (model_.gradients.size() > model_.kernels.size())
      damaged("model.training.gradients", "are more than there are kernels");
    for (size_t i = 0; i < model_.gradients.size(); ++i)
      gradient(model_.gradients[i], model_.kernels[i], at("model.training.gradients", i));
  }

  static void isWord(uint32_t word, uint32_t words, const std::string &field) {
    if (word >= words)
      damaged(field, "names a word that is not there");
  }
  static void sum(const rt::WordSum &sum, uint32_t words, const std::string &field) {
    for (const rt::WordTerm &term : sum)
      for (uint32_t word : term.words)
        isWord(word, words, field);
  }
  static void tensors(const std::vector<rt::RecordTensor> &tensors, uint32_t words,
                      const std::string &field) {
    for (const rt::RecordTensor &tensor : tensors) {
      if (tensor.extents.size() > kMostAxes)
        damaged(field, "has too many axes");
      for (const rt::WordSum &extent : tensor.extents)
        sum(extent, words, field);
    }
  }

  /// Of a sum that no word has a part in.
  static std::optional<int64_t> known(const rt::WordSum &sum) {
    int64_t total = 0;
    for (const rt::WordTerm &term : sum)
      if (!term.words.empty() || __builtin_add_overflow(total, term.coefficient, &total))
        return std::nullopt;
    return total;
  }
  using Count = std::optional<int64_t>; ///< of elements, where it is known without a record
  static Count product(const std::vector<Count> &factors) {
    int64_t total = 1;
    for (const Count &factor : factors)
      if (!factor || *factor < 0 || __builtin_mul_overflow(total, *factor, &total))
        return std::nullopt;
    return total;
  }
  static Count elements(const rt::RecordTensor &tensor) {
    std::vector<Count> extents;
    for (const rt::WordSum &extent : tensor.extents)
      extents.push_back(known(extent));
    return product(extents);
  }
  static Count elements(const std::vector<int64_t> &shape) {
    return product({shape.begin(), shape.end()});
  }
  /// Of the row in a word of a record.
  static Count elements(const rt::KernelDesc &kernel, uint32_t at) {
    const rt::RecordWord *entry = rt::entryAt(kernel, at);
    return entry && entry->kind == rt::RecordWord::Row ? elements(entry->shape) : std::nullopt;
  }
  static Count elements(const rt::RowSource &source, const rt::KernelGradient &gradient,
                        const rt::KernelDesc &kernel) {
    return source.kind == rt::RowSource::Argument ? elements(kernel, source.index)
           : source.kind == rt::RowSource::Output ? elements(gradient.outputs[source.index])
                                                  : elements(kernel.results[source.index]);
  }
  static void sameSize(Count a, Count b, const std::string &field) {
    if (a && b && *a != *b)
      damaged(field,
              "has " + std::to_string(*a) + " elements where there are " + std::to_string(*b));
  }

  /// What is added to each other is of one size, as far as no record says the sizes.
  void gradientSizes(const rt::KernelGradient &gradient, const rt::KernelDesc &kernel,
                     const std::string &field) const {
    auto of = [&](const rt::RowSource &source) { return elements(source, gradient, kernel); };
    if (gradient.kernel >= 0)
      for (size_t i = 0; i < gradient.words.size(); ++i)
        if (gradient.words[i].kind == rt::BackwardWord::Row)
          sameSize(of(gradient.words[i].source),
                   elements(model_.kernels[static_cast<size_t>(gradient.kernel)],
                            static_cast<uint32_t>(i)),
                   at(field + ".words", i));
    for (size_t i = 0; i < gradient.arguments.size(); ++i) {
      const rt::ArgumentGradient &argument = gradient.arguments[i];
      sameSize(elements(argument.tensor), of(argument.gradient), at(field + ".arguments", i));
      sameSize(elements(argument.tensor), elements(kernel, argument.word),
               at(field + ".arguments", i));
    }
    for (size_t i = 0; i < gradient.weights.size(); ++i) {
      const rt::WeightGradient &weight = gradient.weights[i];
      const std::vector<int64_t> &shape = model_.params[weight.param].shape;
      Count whole = elements(shape), rows = known(weight.rows);
      std::string name = at(field + ".weights", i);
      if (weight.kind == rt::WeightGradient::Whole) {
        sameSize(of(weight.right), whole, name);
      } else if (weight.kind == rt::WeightGradient::Product) {
        sameSize(of(weight.left), product({rows, weight.rowCount}), name);
        sameSize(of(weight.right), product({rows, weight.columnCount}), name);
      } else if (whole && !shape.empty() && shape[0] > 0) {
        sameSize(of(weight.right), product({of(weight.left), *whole / shape[0]}), name);
      }
    }
  }

  void gradient(const rt::KernelGradient &gradient, const rt::KernelDesc &kernel,
                const std::string &field) const {
    auto source = [&](const rt::RowSource &source) {
      size_t most = source.kind == rt::RowSource::Argument ? kernel.words
                    : source.kind == rt::RowSource::Output ? gradient.outputs.size()
                                                           : kernel.results.size();
      if (source.index >= most)
        damaged(field, "names a row that is not there");
    };
    auto first = static_cast<int64_t>(model_.gradients.size());
    if (gradient.kernel < -1 || gradient.kernel >= static_cast<int64_t>(model_.kernels.size()) ||
        (gradient.kernel >= 0 && gradient.kernel < first))
      damaged(field + ".kernel", "is none that goes back");
    if (gradient.kernel >= 0 &&
        model_.kernels[static_cast<size_t>(gradient.kernel)].words != gradient.words.size() + 1)
      damaged(field + ".words", "are not those of the kernel's records");
    if (gradient.wanted.size() > kernel.results.size())
      damaged(field + ".wanted", "are more than there are results");
    for (const rt::BackwardWord &word : gradient.words) {
      if (word.kind == rt::BackwardWord::Copy)
        isWord(word.source.index, kernel.words, field + ".words");
      else if (word.kind == rt::BackwardWord::Row)
        source(word.source);
      sum(word.extent, kernel.words, field + ".words");
    }
    tensors(gradient.outputs, kernel.words, field + ".outputs");
    tensors(gradient.temporaries, kernel.words, field + ".temporaries");
    for (const rt::ArgumentGradient &argument : gradient.arguments) {
      isWord(argument.word, kernel.words, field + ".arguments");
      tensors({argument.tensor}, kernel.words, field + ".arguments");
      source(argument.gradient);
    }
    for (const rt::WeightGradient &weight : gradient.weights) {
      if (weight.param >= model_.params.size())
        damaged(field + ".weights", "name a parameter that is not there");
      auto [rows, columns] = rt::matrixOf(model_.params[weight.param]);
      if (weight.kind == rt::WeightGradient::Product &&
          (weight.rowBegin < 0 || weight.rowCount < 0 || weight.rowCount > rows ||
           weight.rowBegin > rows - weight.rowCount || weight.columnBegin < 0 ||
           weight.columnCount < 0 || weight.columnCount > columns ||
           weight.columnBegin > columns - weight.columnCount))
        damaged(field + ".weights", "lie outside of a parameter");
      if (weight.kind != rt::WeightGradient::Whole)
        source(weight.left);
      source(weight.right);
      sum(weight.rows, kernel.words, field + ".weights");
    }
    gradientSizes(gradient, kernel, field);
  }

  void functions() const {
    const Functions &f = d_.image.functions;
    if (std::optional<std::string> problem = d_.image.layout.problem())
      damaged(body("layout"), "has " + *problem);
    if (f.kernels.size() != model_.kernels.size())
      damaged(body("functions.kernels"), "are not one for each kernel");
    for (uint64_t kernel : f.kernels)
      if (!d_.image.layout.isCode(kernel))
        damaged(body("functions.kernels"), "lie outside of the code");
    if (!d_.image.layout.isCode(f.entry) ||
        (f.foldWeights && !d_.image.layout.isCode(*f.foldWeights)))
      damaged(body("functions"), "lie outside of the code");
  }

  void packed() const {
    std::vector<uint64_t> sizes;
    try {
      sizes = rt::packedSizes(model_);
    } catch (const InternalError &error) {
      damaged("model.kernels", std::string("have weights that do not fit: ") + error.what());
    }
    if (sizes.size() != d_.image.packed.size())
      damaged(body("packed"), "are not as many as the kernels use");
    for (size_t i = 0; i < sizes.size(); ++i) {
      const PackedRange &range = d_.image.packed[i];
      if (range.bytes != sizes[i] || range.offset % rt::kGranuleBytes != 0 ||
          range.offset > d_.code().packed.bytes ||
          range.bytes > d_.code().packed.bytes - range.offset)
        damaged(at(body("packed"), i), "is not where packed weights are, or has another size");
    }
  }

  const Description &d_;
  const Model &model_;
  std::vector<uint64_t> parts_; ///< by type; 0: not known yet
};

} // namespace

void verify(const Description &description) { Verifier(description).run(); }

} // namespace sheaf::artefact
