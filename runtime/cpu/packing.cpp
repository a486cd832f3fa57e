#include "runtime/cpu/packing.h"

#include "runtime/model/error.h"
#include "runtime/model/param_matrix.h"

#include <algorithm>
#include <map>

namespace sheaf::rt {

namespace {

/// A use as a key: equal keys, equal bytes.
std::vector<int64_t> keyOf(const WeightUse &use) {
  std::vector<int64_t> key{use.kind,
                           use.width,
                           use.lanes,
                           use.vectors,
                           static_cast<int64_t>(use.form),
                           use.depthMultiple,
                           reinterpret_cast<intptr_t>(use.library),
                           use.aStride,
                           use.cStride};
  for (const PackView &view : use.views) {
    key.push_back(-1);
    key.push_back(view.column);
    for (const PackSegment &s : view.segments)
      key.insert(key.end(), {s.param, s.kBegin, s.kEnd, s.transposed});
  }
  return key;
}

/// The extent of the contraction as it is packed.
int64_t packedDepth(const PackView &view, const WeightUse &use) {
  int64_t depth = 0;
  for (const PackSegment &s : view.segments)
    depth += alignUp(s.kEnd - s.kBegin, use.depthMultiple);
  return depth;
}

/// The same, after checking that every element asked for exists.
int64_t checkedDepth(const Model &model, const KernelDesc &kernel, const WeightUse &use) {
  auto refuse = [&](const char *why) {
    throw InternalError("kernel '" + kernel.name + "': packed weight " + why);
  };
  if (use.lanes <= 0 || use.vectors <= 0 || use.width < 0 || use.views.empty())
    refuse("without lanes, vectors or views");
  if (use.isBf16() && use.vectors > kMostPackedBlock / use.lanes)
    refuse("with too wide panels");
  if (use.isBf16() && use.kind == WeightUse::PanelsByView)
    refuse("of factors view by view");
  if (use.depthMultiple <= 0 || use.depthMultiple % (use.isBf16() ? 2 : 1) != 0)
    refuse("of an impossible depth");
  int64_t depth = -1;
  for (const PackView &view : use.views) {
    for (const PackSegment &s : view.segments) {
      if (s.param >= model.params.size())
        refuse("of no parameter");
      ParamMatrix m = matrixOf(model.params[s.param]);
      if (s.transposed)
        std::swap(m.rows, m.columns);
      if (s.kBegin < 0 || s.kBegin > s.kEnd || s.kEnd > m.rows)
        refuse("with rows outside of its parameter");
      if (view.column < 0 || view.column + use.width > m.columns)
        refuse("with columns outside of its parameter");
    }
    int64_t k = packedDepth(view, use);
    if (depth >= 0 && depth != k)
      refuse("whose views differ in depth");
    depth = k;
  }
  return depth;
}

} // namespace

int64_t panelCount(const WeightUse &use) {
  int64_t block = use.vectors * use.lanes;
  return (use.width + block - 1) / block;
}

std::optional<uint64_t> packedBytes(const WeightUse &use) {
  uint64_t bytes = use.isBf16() ? sizeof(uint16_t) : sizeof(float);
  if (use.kind == WeightUse::Foreign) // as they are given, and in the library's form
    bytes *= 2;
  for (int64_t factor : {panelCount(use), packedDepth(use.views.front(), use), use.vectors,
                         use.lanes, static_cast<int64_t>(use.views.size())})
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(factor), &bytes))
      return std::nullopt;
  return bytes;
}

namespace {

PackedCopies::Copy copyOf(const Model &model, const KernelDesc &kernel, const WeightUse &use) {
  int64_t depth = checkedDepth(model, kernel, use);
  std::optional<uint64_t> bytes = packedBytes(use);
  if (!bytes)
    throw InternalError("kernel '" + kernel.name + "': packed weight of no possible size");
  return {&use, depth, *bytes};
}

} // namespace

PackedCopies::PackedCopies(const Model &model)
    : which(model.kernels.size()), of(model.params.size()), isRaw(model.params.size()) {
  std::map<std::vector<int64_t>, int64_t> known;
  const CpuCode &code = cpuCode(model);
  auto add = [&](size_t number, std::vector<int64_t> &uses) {
    const KernelDesc &kernel = model.kernels[number];
    for (const WeightUse &use : code.kernels[number].weights) {
      if (use.kind == WeightUse::Raw) {
        if (use.param >= model.params.size())
          throw InternalError("kernel '" + kernel.name + "': raw weight of no parameter");
        uses.push_back(-1);
        isRaw[use.param] = true;
        continue;
      }
      auto [it, fresh] = known.try_emplace(keyOf(use), static_cast<int64_t>(copies.size()));
      if (fresh)
        copies.push_back(copyOf(model, kernel, use));
      uses.push_back(it->second);
    }
  };
  for (bool joined : {false, true}) {
    for (size_t i = 0; i < model.kernels.size(); ++i)
      if (model.kernels[i].joined == joined)
        add(i, which[i]);
    if (!joined)
      always = copies.size();
  }
  for (size_t i = 0; i < copies.size(); ++i)
    for (const PackView &view : copies[i].use->views)
      for (const PackSegment &s : view.segments)
        if (of[s.param].empty() || of[s.param].back() != i)
          of[s.param].push_back(i);
}

std::vector<size_t> PackedCopies::onlyIn(size_t param) const {
  bool isPacked = std::all_of(of[param].begin(), of[param].end(), [&](size_t copy) {
    return copy < always && copies[copy].use->kind != WeightUse::Foreign;
  });
  return isPacked && !isRaw[param] ? of[param] : std::vector<size_t>();
}

std::vector<uint64_t> packedSizes(const Model &model) {
  std::vector<uint64_t> sizes;
  PackedCopies copies(model);
  for (const PackedCopies::Copy &copy : std::span(copies.copies).first(copies.always))
    sizes.push_back(copy.bytes);
  return sizes;
}

} // namespace sheaf::rt
