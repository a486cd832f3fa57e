#include "tests/runtime/tree_model.h"
#include "runtime/cpu/kernel_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace sheaf::rt::test {

namespace {

constexpr int64_t granulesOf(int64_t hidden) { return rowGranules(hidden, DType::F32); }

float *floats(uint8_t *rows, int32_t id) {
  return reinterpret_cast<float *>(rows + int64_t(id) * kGranuleBytes);
}

// Words: embedding row, out. Weights: b, raw.
template <int64_t H>
void leafKernel(const int32_t *records, int64_t begin, int64_t end, int64_t, int64_t, uint8_t *rows,
                const void *const *weights, uint8_t *) {
  auto *bias = static_cast<const float *>(weights[0]);
  for (int64_t i = begin; i < end; ++i) {
    const int32_t *record = records + i * 2;
    const float *in = floats(rows, record[0]);
    float *out = floats(rows, record[1]);
    for (int64_t j = 0; j < H; ++j)
      out[j] = in[j] + bias[j];
  }
}

// Words: left, right, out. Weights: [b; w] in panels of 16 columns.
template <int64_t H>
void nodeKernel(const int32_t *records, int64_t begin, int64_t end, int64_t panelBegin,
                int64_t panelEnd, uint8_t *rows, const void *const *weights, uint8_t *scratch) {
  constexpr int64_t kDepth = 1 + 2 * H;
  auto *packed = static_cast<const float *>(weights[0]);
  auto *sums = reinterpret_cast<float *>(scratch);
  for (int64_t i = begin; i < end; ++i) {
    const int32_t *record = records + i * 3;
    const float *in[2] = {floats(rows, record[0]), floats(rows, record[1])};
    float *out = floats(rows, record[2]);
    for (int64_t p = panelBegin; p < panelEnd; ++p) {
      const float *panel = packed + p * kDepth * 16;
      for (int64_t lane = 0; lane < 16; ++lane)
        sums[lane] = panel[lane];
      for (int64_t k = 0; k < 2 * H; ++k)
        for (int64_t lane = 0; lane < 16; ++lane)
          sums[lane] = std::fma(in[k / H][k % H], panel[(1 + k) * 16 + lane], sums[lane]);
      for (int64_t lane = 0; lane < 16 && p * 16 + lane < H; ++lane)
        out[p * 16 + lane] = sums[lane];
    }
  }
}

struct Value {
  Slot handle;
  int64_t size;
};

template <int64_t H, bool Once = false>
UNINSTRUMENTED Slot recordLeaf(Context *context, int64_t word) {
  if (word == kBadWord)
    sheaf_fail(context, 0, word, kVocab);
  if (word == kWorseWord)
    sheaf_fail(context, 1, 0, 0);
  auto row = static_cast<int32_t>(word * granulesOf(H)); // the embedding starts at granule 0
  if (Once)
    return sheaf_record_once(context, kLeafKernel, 0, granulesOf(H), &row);
  int32_t *record = sheaf_record(context, kLeafKernel, 0, granulesOf(H));
  record[0] = row;
  return TensorHandle{static_cast<uint32_t>(record[1]), 1}.pack();
}

template <int64_t H, bool Once = false>
UNINSTRUMENTED Slot recordNode(Context *context, Slot left, Slot right) {
  TensorHandle l = TensorHandle::unpack(left), r = TensorHandle::unpack(right);
  uint32_t depth = std::max(l.depth, r.depth);
  if (Once) {
    int32_t words[] = {static_cast<int32_t>(l.id), static_cast<int32_t>(r.id)};
    return sheaf_record_once(context, kNodeKernel, depth, granulesOf(H), words);
  }
  int32_t *record = sheaf_record(context, kNodeKernel, depth, granulesOf(H));
  record[0] = static_cast<int32_t>(l.id);
  record[1] = static_cast<int32_t>(r.id);
  return TensorHandle{static_cast<uint32_t>(record[2]), depth + 1}.pack();
}

template <int64_t H, bool Once> UNINSTRUMENTED Value walk(Context *context, const Slot *tree) {
  auto *frame = static_cast<uint8_t *>(__builtin_frame_address(0));
  if (frame <= context->stackTaken)
    sheaf_deepen(context, frame, 2);
  if (tree[0] == 0)
    return {recordLeaf<H, Once>(context, tree[1]), 1};
  Value left = walk<H, Once>(context, std::bit_cast<const Slot *>(tree[1]));
  Value right = walk<H, Once>(context, std::bit_cast<const Slot *>(tree[2]));
  return {recordNode<H, Once>(context, left.handle, right.handle), left.size + right.size + 1};
}

template <int64_t H, bool Once = false>
UNINSTRUMENTED void entry(Context *context, const Slot *args, Slot *results) {
  Value value = walk<H, Once>(context, std::bit_cast<const Slot *>(args[0]));
  results[0] = value.handle;
  results[1] = value.size;
}

// The chain upside down: the same number of nodes, from the leaf on.
template <int64_t H>
UNINSTRUMENTED void tailEntry(Context *context, const Slot *args, Slot *results) {
  auto *tree = std::bit_cast<const Slot *>(args[0]);
  Slot value = recordLeaf<H>(context, 1);
  int64_t size = 1;
  for (; tree[0] != 0; tree = std::bit_cast<const Slot *>(tree[1])) {
    Slot leaf = recordLeaf<H>(context, std::bit_cast<const Slot *>(tree[2])[1]);
    value = recordNode<H>(context, value, leaf);
    size += 2;
  }
  results[0] = value;
  results[1] = size;
}

template <int64_t H> void fill(Model &model) {
  cpuCode(model).kernels[kLeafKernel].fn = leafKernel<H>;
  cpuCode(model).kernels[kNodeKernel].fn = nodeKernel<H>;
  model.entry.fn = entry<H>;
}

} // namespace

Model makeTreeModel(int64_t hidden) {
  Model model;
  model.name = "tree";
  TypeTable &types = model.types;
  types.types.resize(5);
  types.types[kTokenType].kind = TypeKind::Token;
  types.types[kTreeType].kind = TypeKind::Data;
  types.types[kTensorType].kind = TypeKind::Tensor;
  types.types[kTensorType].shape = {hidden};
  types.types[kIntType].kind = TypeKind::Int;
  types.types[kResultType].kind = TypeKind::Tuple;
  types.types[kResultType].children = {kTensorType, kIntType};
  types.data.push_back(
      {"Tree",
       {{"Leaf", {"word"}, {kTokenType}}, {"Node", {"left", "right"}, {kTreeType, kTreeType}}}});

  auto param = [&](const char *name, std::vector<int64_t> shape, double std) {
    ParamDesc desc;
    desc.name = name;
    desc.shape = std::move(shape);
    desc.init = "normal";
    desc.initArgs = {std};
    desc.id = model.paramGranules;
    model.paramGranules += static_cast<uint32_t>(tensorGranules(desc.shape, desc.dtype));
    model.params.push_back(std::move(desc));
  };
  param("embedding", {kVocab, hidden}, 1);
  param("w", {2 * hidden, hidden}, 0.7 / std::sqrt(2.0 * static_cast<double>(hidden)));
  param("b", {hidden}, 0.1);

  model.kernels.resize(2);
  KernelDesc &leaf = model.kernels[kLeafKernel];
  leaf.name = "leaf";
  leaf.words = 2;
  leaf.layout = {{RecordWord::Row, "word", {hidden}}, {RecordWord::Out, "out"}};
  KernelDesc &node = model.kernels[kNodeKernel];
  node.name = "node";
  node.words = 3;
  node.layout = {{RecordWord::Row, "left", {hidden}},
                 {RecordWord::Row, "right", {hidden}},
                 {RecordWord::Out, "out"}};
  CpuCode &code = cpuCode(model);
  code.kernels[kLeafKernel].weights.resize(1);
  code.kernels[kLeafKernel].weights[0].param = kB;
  CpuKernel &nodeCode = code.kernels[kNodeKernel];
  WeightUse use;
  use.kind = WeightUse::Panels;
  use.width = hidden;
  use.views = {{{{kB, 0, 1}, {kW, 0, 2 * hidden}}, 0}};
  nodeCode.weights = {use};
  nodeCode.scratchBytes = 64;
  nodeCode.panels = static_cast<uint32_t>((hidden + 15) / 16);
  leaf.results = node.results = {{DType::F32, {{{hidden, {}}}}}};
  node.flop = {{2.0 * 2 * static_cast<double>(hidden * hidden), {}}};

  model.entry.name = "main";
  model.entry.argNames = {"t"};
  model.entry.argTypes = {kTreeType};
  model.entry.resultType = kResultType;
  model.messages = {"tree.sheaf:3:5: word {0} is outside of a vocabulary of {1} ({0})",
                    "tree.sheaf:4:5: {2} {0",
                    "the recursion is too deep: the host stack of {stack} is used up"};
  if (hidden == 4)
    fill<4>(model);
  else if (hidden == 20)
    fill<20>(model);
  else
    fill<64>(model);
  return model;
}

void useOnceEntry(Model &model, int64_t hidden) {
  model.entry.fn = hidden == 4 ? entry<4, true> : hidden == 20 ? entry<20, true> : entry<64, true>;
}

void useTailEntry(Model &model, int64_t hidden) {
  model.entry.fn = hidden == 4 ? tailEntry<4> : hidden == 20 ? tailEntry<20> : tailEntry<64>;
}

Slot *Trees::slots(size_t n) {
  if (left_ < n) {
    left_ = 1 << 16;
    blocks_.push_back(std::make_unique<Slot[]>(left_));
    next_ = blocks_.back().get();
  }
  Slot *p = next_;
  next_ += n;
  left_ -= n;
  return p;
}

const Slot *Trees::leaf(int64_t word) {
  Slot *p = slots(2);
  p[0] = 0;
  p[1] = word;
  return p;
}

const Slot *Trees::node(const Slot *left, const Slot *right) {
  Slot *p = slots(3);
  p[0] = 1;
  p[1] = std::bit_cast<Slot>(left);
  p[2] = std::bit_cast<Slot>(right);
  return p;
}

const Slot *Trees::random(uint64_t seed, int leaves) {
  std::mt19937_64 generator(seed);
  std::vector<const Slot *> parts;
  for (int i = 0; i < leaves; ++i)
    parts.push_back(leaf(static_cast<int64_t>(generator() % kVocab)));
  while (parts.size() > 1) {
    size_t i = generator() % (parts.size() - 1);
    parts[i] = node(parts[i], parts[i + 1]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return parts[0];
}

const Slot *Trees::chain(int64_t nodes) {
  const Slot *tree = leaf(0);
  for (int64_t i = 0; i < nodes; ++i)
    tree = node(tree, leaf(i % kVocab));
  return tree;
}

Instance Trees::instance(const Slot *tree) {
  arguments_.push_back(std::make_unique<Slot>(std::bit_cast<Slot>(tree)));
  return {arguments_.back().get(), index_++};
}

std::vector<Instance> Trees::randomBatch(int64_t count, uint64_t seed) {
  std::vector<Instance> batch;
  for (int64_t i = 0; i < count; ++i)
    batch.push_back(instance(random(seed * 1000 + static_cast<uint64_t>(i), 1 + int(i * 7 % 23))));
  return batch;
}

std::vector<float> reference(const Session &session, const Slot *tree) {
  std::vector<float> b(static_cast<size_t>(session.param(kB).elements()));
  size_t hidden = b.size();
  session.param(kB).copyTo(b.data());
  std::vector<float> out(hidden);
  if (tree[0] == 0) {
    std::vector<float> embedding(kVocab * hidden);
    session.param(kEmbedding).copyTo(embedding.data());
    for (size_t j = 0; j < hidden; ++j)
      out[j] = embedding[static_cast<size_t>(tree[1]) * hidden + j] + b[j];
    return out;
  }
  std::vector<float> w(2 * hidden * hidden);
  session.param(kW).copyTo(w.data());
  std::vector<float> in = reference(session, std::bit_cast<const Slot *>(tree[1]));
  std::vector<float> right = reference(session, std::bit_cast<const Slot *>(tree[2]));
  in.insert(in.end(), right.begin(), right.end());
  for (size_t j = 0; j < hidden; ++j) {
    float sum = b[j];
    for (size_t k = 0; k < in.size(); ++k)
      sum = std::fma(in[k], w[k * hidden + j], sum);
    out[j] = sum;
  }
  return out;
}

std::vector<float> valueOf(const Session &session, const Outcome &outcome) {
  TensorView view = session.tensor(kTensorType, outcome.slots);
  std::vector<float> out(static_cast<size_t>(view.elements()));
  view.copyTo(out.data());
  return out;
}

} // namespace sheaf::rt::test
