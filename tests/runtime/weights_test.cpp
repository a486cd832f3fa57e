#include "runtime/cpu/kernel_code.h"
#include "runtime/cpu/weights.h"
#include "runtime/device/device.h"

#include "runtime/cpu/packing.h"
#include "runtime/model/convert.h"
#include "runtime/model/error.h"
#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace sheaf;
using namespace sheaf::rt;

namespace {

void nothing(const int32_t *, int64_t, int64_t, int64_t, int64_t, uint8_t *, const void *const *,
             uint8_t *) {}
void nowhere(Context *, const Slot *, Slot *) {}

struct WeightModel {
  Model model;
  std::vector<std::vector<float>> values; ///< row-major, as kernels should see them

  uint32_t param(std::vector<int64_t> shape, DType dtype = DType::F32) {
    ParamDesc desc;
    desc.name = "p" + std::to_string(model.params.size());
    desc.dtype = dtype;
    desc.shape = std::move(shape);
    desc.id = model.paramGranules;
    model.paramGranules += static_cast<uint32_t>(tensorGranules(desc.shape, dtype));
    model.params.push_back(desc);
    return static_cast<uint32_t>(model.params.size() - 1);
  }
  void kernel(std::vector<WeightUse> uses) {
    KernelDesc desc;
    desc.name = "k" + std::to_string(model.kernels.size());
    model.kernels.push_back(desc);
    CpuKernel &code = cpuCode(model).kernels.back();
    code.fn = nothing;
    code.weights = std::move(uses);
  }
  Session session(SessionOptions options = {}) {
    model.types.types.resize(1);
    model.entry.fn = nowhere;
    options.hostStackBytes = 1 << 20;
    return Session(model, options);
  }
  void fill(Session &session) {
    std::mt19937 random(5);
    for (size_t i = 0; i < model.params.size(); ++i) {
      TensorView view = session.param(i);
      size_t n = static_cast<size_t>(view.elements());
      std::vector<float> seen(n);
      std::vector<uint8_t> bytes(n * static_cast<size_t>(dtypeBytes(view.dtype)));
      for (size_t j = 0; j < n; ++j) {
        float value = static_cast<float>(random() % 2001) / 16 - 60;
        if (view.dtype == DType::BF16 || view.dtype == DType::F16) {
          uint16_t half = view.dtype == DType::BF16 ? floatToBF16(value) : floatToF16(value);
          memcpy(&bytes[j * 2], &half, 2);
          value = view.dtype == DType::BF16 ? bf16ToFloat(half) : f16ToFloat(half);
        } else {
          memcpy(&bytes[j * 4], &value, 4);
        }
        seen[j] = value;
      }
      session.setParam(i, bytes);
      values.push_back(seen);
      std::vector<uint8_t> back(bytes.size());
      session.param(i).copyTo(back.data());
      EXPECT_EQ(back, bytes);
    }
  }
  /// The definition in kernel_code.h, element by element.
  std::vector<float> naive(const WeightUse &use) const {
    int64_t depth = 0;
    for (const PackSegment &s : use.views[0].segments)
      depth += s.kEnd - s.kBegin;
    std::vector<float> out;
    int64_t block = use.vectors * use.lanes;
    auto vectors = [&](const PackView &view, int64_t p, int64_t k) {
      for (int64_t j = p * block; j < (p + 1) * block; ++j)
        out.push_back(j < use.width ? element(view, k, view.column + j) : 0.0f);
    };
    for (int64_t p = 0; p < panelCount(use); ++p)
      if (use.kind == WeightUse::PanelsByView)
        for (const PackView &view : use.views)
          for (int64_t k = 0; k < depth; ++k)
            vectors(view, p, k);
      else
        for (int64_t k = 0; k < depth; ++k)
          for (const PackView &view : use.views)
            vectors(view, p, k);
    return out;
  }
  float element(const PackView &view, int64_t k, int64_t column) const {
    for (const PackSegment &s : view.segments) {
      if (k >= s.kEnd - s.kBegin) {
        k -= s.kEnd - s.kBegin;
        continue;
      }
      int64_t columns = model.params[s.param].shape.back();
      int64_t row = s.kBegin + k;
      return values[s.param][static_cast<size_t>(s.transposed ? column * columns + row
                                                              : row * columns + column)];
    }
    return NAN;
  }
};

WeightUse panels(std::vector<PackView> views, int64_t width, int64_t lanes, int64_t vectors) {
  WeightUse use;
  use.kind = WeightUse::Panels;
  use.views = std::move(views);
  use.width = width;
  use.lanes = lanes;
  use.vectors = vectors;
  return use;
}

TEST(Weights, PackingFollowsItsDefinition) {
  WeightModel m;
  uint32_t w = m.param({24, 50}), b = m.param({50}), v = m.param({37, 30}), u = m.param({30, 12});
  uint32_t half = m.param({10, 20}, DType::BF16), half2 = m.param({10, 20}, DType::F16);
  uint32_t cube = m.param({2, 5, 20});
  m.kernel({panels({{{{w, 0, 24}}, 0}}, 50, 16, 1)});
  // Two gates side by side, with their bias first.
  m.kernel({panels({{{{b, 0, 1}, {w, 0, 24}}, 0}, {{{b, 0, 1}, {w, 0, 24}}, 25}}, 25, 8, 2)});
  // The same, but each gate for itself; the second one from another parameter's columns.
  WeightUse apart = panels(
      {{{{b, 0, 1}, {w, 0, 24}}, 0}, {{{b, 0, 1}, {w, 4, 20}, {v, 2, 10, true}}, 7}}, 25, 8, 2);
  apart.kind = WeightUse::PanelsByView;
  m.kernel({apart});
  // Pieces of two parameters, one of them transposed.
  m.kernel({panels({{{{w, 3, 9}, {v, 2, 28, true}}, 5}}, 29, 4, 3),
            panels({{{{v, 0, 37}}, 7}}, 23, 16, 2)});
  m.kernel({panels({{{{half, 0, 10}}, 0}, {{{half2, 0, 10}}, 0}}, 20, 16, 1)});
  m.kernel(
      {panels({{{{half, 1, 20, true}}, 2}}, 8, 8, 1), panels({{{{cube, 0, 10}}, 0}}, 20, 16, 1)});
  m.kernel({panels({{{{u, 0, 30}}, 0}}, 0, 16, 1)});
  Session session = m.session();
  m.fill(session);
  session.packWeights();
  for (size_t k = 0; k < m.model.kernels.size(); ++k) {
    const std::vector<WeightUse> &uses = cpuCode(m.model).kernels[k].weights;
    for (size_t i = 0; i < uses.size(); ++i) {
      std::vector<float> expected = m.naive(uses[i]);
      const void *actual = session.kernelWeights(k)[i];
      EXPECT_EQ(reinterpret_cast<uintptr_t>(actual) % 64, 0u);
      auto *floats = static_cast<const float *>(actual);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), floats))
          << "kernel " << k << " use " << i;
    }
  }
}

// Rows that were changed are packed alone, whatever share of a copy, a panel or a pair they are.
TEST(Weights, PackingRowsIsPackingAll) {
  for (bool factors : {false, true}) {
    WeightModel m;
    uint32_t w = m.param({24, 50}), b = m.param({50}), v = m.param({37, 30});
    std::vector<WeightUse> uses = {
        panels({{{{w, 0, 24}}, 0}}, 50, 16, 1),
        panels({{{{b, 0, 1}, {w, 0, 24}}, 0}, {{{b, 0, 1}, {w, 0, 24}}, 25}}, 25, 8, 2),
        panels({{{{w, 3, 9}, {v, 2, 28, true}}, 5}}, 29, 4, 3),
        panels({{{{v, 1, 30, true}}, 3}}, 34, 16, 1), panels({{{{v, 5, 36}}, 7}}, 23, 16, 2)};
    if (!factors) {
      uses.push_back(panels({{{{w, 0, 24}}, 0}, {{{w, 0, 4}, {v, 5, 25, true}}, 9}}, 25, 8, 2));
      uses.back().kind = WeightUse::PanelsByView;
    }
    for (WeightUse &use : uses) {
      use.form = factors ? WeightForm::Bf16 : WeightForm::F32;
      use.depthMultiple = factors ? 32 : 1;
    }
    m.kernel(uses);
    SessionOptions once;
    once.weightsStay = true;
    m.model.params[w].isValue = m.model.params[v].isValue = false;
    Session session = m.session(), whole = m.session(), stays = m.session(once);
    m.fill(session);
    EXPECT_FALSE(session.packsRows());
    session.packWeights();
    EXPECT_TRUE(session.packsRows());
    std::mt19937 random(3);
    for (size_t i = 0; i < m.model.params.size(); ++i) {
      TensorView view = session.param(i);
      for (int64_t row = 0; row < view.rows();) {
        int64_t end = std::min<int64_t>(view.rows(), row + 1 + static_cast<int64_t>(random() % 7));
        auto *data = reinterpret_cast<float *>(session.paramRow(i) + row * view.rowStride());
        for (int64_t j = 0; j < (end - row) * view.rowStride() / 4; ++j)
          data[j] = static_cast<float>(random() % 1000) / 8 - 50;
        session.device().packRows(i, row, end);
        row = end;
      }
      memcpy(whole.paramRow(i), session.paramRow(i),
             static_cast<size_t>(view.rows() * view.rowStride()));
    }
    session.paramsUpdated({}, /*packed=*/true);
    EXPECT_TRUE(session.packsRows());
    whole.packWeights();
    for (size_t i = 0; i < uses.size(); ++i) {
      std::span<const uint8_t> rows = session.packedWeights()[i], all = whole.packedWeights()[i];
      EXPECT_TRUE(std::equal(rows.begin(), rows.end(), all.begin(), all.end()))
          << "use " << i << (factors ? " in bf16" : "");
    }
    // Packed one by one, with what was first there and then again.
    uint64_t rows = session.memory().weights.now;
    for (Session *from : {&session, &whole})
      for (size_t i = 0; i < m.model.params.size(); ++i) {
        TensorView view = from->param(i);
        std::vector<uint8_t> bytes(static_cast<size_t>(view.elements()) * 4, 0xff);
        if (from == &whole)
          view.copyTo(bytes.data());
        stays.setParam(i, bytes);
      }
    stays.packWeights();
    stays.packWeights();
    for (size_t i = 0; i < uses.size(); ++i) {
      std::span<const uint8_t> kept = stays.packedWeights()[i], all = whole.packedWeights()[i];
      EXPECT_TRUE(std::equal(kept.begin(), kept.end(), all.begin(), all.end())) << i << factors;
    }
    if (!stays.device().facts().sharesRows)
      continue; // it has a copy of the rows beside the host's
    EXPECT_EQ(rows - stays.memory().weights.now, uint64_t(24 * 64 + 37 * 32) * 4);
    EXPECT_EQ(stays.memory().weights.peak - stays.memory().weights.now, uint64_t(24 * 64) * 4)
        << "one at a time";
    EXPECT_THROW(stays.paramRow(w), InternalError);
    EXPECT_THROW(stays.param(v), InternalError);
    EXPECT_NE(stays.paramRow(b), nullptr);
  }
}

TEST(Weights, EqualUsesShareOneCopyAndRawIsTheRow) {
  WeightModel m;
  uint32_t w = m.param({24, 50});
  WeightUse raw;
  raw.param = w;
  WeightUse use = panels({{{{w, 0, 24}}, 0}}, 50, 16, 1);
  m.kernel({use, raw});
  m.kernel({raw, use});
  Session session = m.session();
  m.fill(session);
  session.packWeights();
  EXPECT_EQ(session.kernelWeights(0)[0], session.kernelWeights(1)[1]);
  EXPECT_EQ(session.kernelWeights(0)[1], session.kernelWeights(1)[0]);
  EXPECT_EQ(session.kernelWeights(0)[1], static_cast<const void *>(session.param(w).data));
  EXPECT_EQ(session.memory().packed.now, uint64_t(4 * 24 * 16 * 4));
  // Packing again after a change keeps the address and brings the new values.
  const void *before = session.kernelWeights(0)[0];
  reinterpret_cast<float *>(session.paramRow(w))[0] = 77;
  session.packWeights();
  EXPECT_EQ(session.kernelWeights(0)[0], before);
  EXPECT_EQ(*static_cast<const float *>(before), 77);
}

TEST(Weights, UsesThatDoNotFit) {
  for (int fault = 0; fault < 6; ++fault) {
    WeightModel m;
    uint32_t w = m.param({24, 50});
    WeightUse use = panels({{{{w, 0, 24}}, 0}, {{{w, 0, 24}}, 0}}, 50, 16, 1);
    if (fault == 0)
      use.views[0].column = 1;
    if (fault == 1)
      use.views[0].segments[0].param = 3;
    if (fault == 2)
      use.views[1].segments[0].kEnd = 23;
    if (fault == 3)
      use.views[0].segments[0].transposed = true;
    if (fault == 4)
      use.lanes = 0;
    if (fault == 5) {
      use.kind = WeightUse::PanelsByView;
      use.form = WeightForm::Bf16;
    }
    m.kernel({use});
    EXPECT_THROW(m.session(), InternalError) << fault;
  }
  WeightModel m;
  m.param({2, 3});
  Session session = m.session();
  EXPECT_THROW(session.setParam(0, std::vector<uint8_t>(23)), InternalError);
  EXPECT_EQ(session.findParam("p0"), 0);
  EXPECT_EQ(session.findParam("p1"), -1);
}

TEST(Convert, SixteenBitFloats) {
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t h = static_cast<uint16_t>(i);
    float b = bf16ToFloat(h), f = f16ToFloat(h);
    if (!std::isnan(b))
      EXPECT_EQ(floatToBF16(b), h);
    else
      EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBF16(b))));
    if (!std::isnan(f))
      EXPECT_EQ(floatToF16(f), h);
    else
      EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(f))));
  }
  // Ties go to even, and the largest becomes infinite when rounded up.
  EXPECT_EQ(floatToBF16(1.00390625f), 0x3F80);
  EXPECT_EQ(floatToBF16(1.01171875f), 0x3F82);
  EXPECT_EQ(floatToF16(1.00048828125f), 0x3C00);
  EXPECT_EQ(floatToF16(1.00146484375f), 0x3C02);
  EXPECT_EQ(floatToF16(65519.0f), 0x7BFF);
  EXPECT_EQ(floatToF16(65520.0f), 0x7C00);
  EXPECT_EQ(floatToF16(-1e9f), 0xFC00);
  EXPECT_EQ(floatToF16(0x1p-25f), 0);
  EXPECT_EQ(floatToF16(0x1.8p-25f), 1);
  EXPECT_EQ(floatToF16(0x1.8p-24f), 2);
}

/// Rows of twice the raw weight.
void twice(const int32_t *records, int64_t begin, int64_t end, int64_t, int64_t, uint8_t *rows,
           const void *const *weights, uint8_t *) {
  for (int64_t r = begin; r < end; ++r) {
    auto *out = reinterpret_cast<float *>(rows + uint32_t(records[r]) * uint64_t(kGranuleBytes));
    for (int i = 0; i < 16; ++i)
      out[i] = 2 * static_cast<const float *>(weights[0])[i];
  }
}
void recordTwice(Context *context, const Slot *, Slot *results) {
  int32_t *words = sheaf_record(context, 0, 0, 1);
  results[0] = TensorHandle{static_cast<uint32_t>(words[0]), 1}.pack();
}

TEST(Weights, WhatFollowsFromWeightsIsComputedWheneverTheyChange) {
  WeightModel m;
  uint32_t w = m.param({16}), folded = m.param({16});
  WeightUse raw;
  raw.param = w;
  m.kernel({raw});
  m.kernel({panels({{{{folded, 0, 1}}, 0}}, 16, 16, 1)});
  cpuCode(m.model).kernels[0].fn = twice;
  m.model.kernels[0].words = 1;
  m.model.kernels[0].layout = {{RecordWord::Out, "out"}};
  m.model.foldWeights = recordTwice;
  m.model.folded = {folded};
  Session session = m.session();
  for (float value : {3.0f, -5.0f}) {
    std::vector<float> values(16, value);
    session.setParam(w, {reinterpret_cast<const uint8_t *>(values.data()), 64});
    session.run({});
    auto *row = reinterpret_cast<const float *>(session.param(folded).data);
    EXPECT_EQ(row[0], 2 * value);
    EXPECT_EQ(row[15], 2 * value);
    EXPECT_EQ(static_cast<const float *>(session.kernelWeights(1)[0])[7], 2 * value);
    EXPECT_EQ(session.counters().launches, 0u) << "it belongs to no mini-batch";
  }
}

} // namespace
