//===- stored_test.cpp - Choices that the store holds ---------------------===//
#include "compiler/driver/Compiler.h"
#include "compiler/driver/StoredCode.h"
#include "compiler/frontend/Source.h"
#include "runtime/cpu/kernel_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;
using namespace sheaf;
using driver::TunedKernel;
using kernels::Tuning;

namespace {

store::Bytes bytesOf(std::string_view text) { return {text.begin(), text.end()}; }

TEST(TunedKernel, IsReadAsItWasWritten) {
  for (const TunedKernel &tuned :
       {TunedKernel{}, TunedKernel{{3, 12, 400}, 1.25, 1.125, 2}, TunedKernel{{32, 32, 3200}}}) {
    std::optional<TunedKernel> read = TunedKernel::parse(tuned.bytes());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->tuning, tuned.tuning);
    EXPECT_EQ(read->ratio, tuned.ratio);
    EXPECT_EQ(read->low, tuned.low);
    EXPECT_EQ(read->high, tuned.high);
  }
}

TEST(TunedKernel, NothingElseIsRead) {
  std::string good(reinterpret_cast<const char *>(TunedKernel{{3, 12, 400}}.bytes().data()),
                   TunedKernel{{3, 12, 400}}.bytes().size());
  ASSERT_EQ(good, "vectors 3 rows 12 near 400 by 0 ratio 1.0000 1.0000 1.0000");
  // The last number may be shorter.
  for (size_t size = 0; size < good.rfind(' ') + 2; ++size)
    EXPECT_FALSE(TunedKernel::parse(bytesOf(good.substr(0, size)))) << good.substr(0, size);
  for (const char *text :
       {"vectors", "vectors 3 rows 12 near 400 by 0", "vectors 33 rows 1 near 0 by 0 ratio 1 1 1",
        "vectors -1 rows 1 near 0 by 0 ratio 1 1 1", "vectors 3 rows 12 near 4000 by 0 ratio 1 1 1",
        "vectors 3 rows 12 near 400 by 0 ratio 1 1",
        "vectors 3 rows 12 near 400 by 0 ratio 1 1 1 1",
        "vectors 3 rows 12 near 400 by 0 ratio nan 1 1",
        "vectors 3 rows 12 near 400 by 0 ratio 0 1 1",
        "vectors 99999999999999999999 rows 1 near 0 by 0 ratio 1 1 1",
        "vectors 3 rows 12 near 400 by 0 ratio 1 1 1\n"})
    EXPECT_FALSE(TunedKernel::parse(bytesOf(text))) << text;
}

/// One kernel, whose block is a product.
constexpr const char *kModel = R"(dim n = 64
param w : f32[n, 96] = normal(1)
fn main(x: f32[n]) -> f32[96] = tanh(x @ w)
)";

class StoredTunings : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sheaf-tune-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    options_.store.directory = name;
  }
  void TearDown() override { fs::remove_all(options_.store.directory); }

  std::unique_ptr<driver::CompiledModel> compile() {
    SourceFile source("m.sheaf", kModel);
    Diagnostics diags(source);
    auto model = driver::compile(source, options_, diags);
    EXPECT_TRUE(model) << diags.render(false);
    return model;
  }

  void keep(const std::string &key, const store::Bytes &value) {
    store::Store store(options_.store);
    store.keep({{key, value}});
    ASSERT_EQ(store.use().kept, 1u);
  }

  bool saysTuned(const driver::CompiledModel &model) {
    const std::vector<std::string> &remarks = model.blocks()[0].remarks;
    return std::any_of(remarks.begin(), remarks.end(),
                       [](const std::string &remark) { return remark.starts_with("tuned: "); });
  }

  driver::CompileOptions options_;
};

TEST_F(StoredTunings, AreUsed) {
  auto before = compile();
  const driver::BlockInfo &block = before->blocks()[0];
  Tuning narrow{.vectors = 1};
  std::string expected = before->tilingWith(0, narrow);
  ASSERT_NE(expected, block.tiling);
  EXPECT_FALSE(block.tuned || saysTuned(*before));

  keep(block.tuningKey, TunedKernel{narrow, 1.5, 1.25, 1.75}.bytes());
  auto after = compile();
  EXPECT_EQ(after->blocks()[0].tiling, expected);
  EXPECT_TRUE(after->blocks()[0].tuned && saysTuned(*after));
  EXPECT_EQ(rt::cpuCode(after->model()).kernels[0].weights[0].vectors, 1);
  // The host code is as it was; the kernel is another one, for the first time only.
  EXPECT_EQ(after->storeUse().found, 1u);
  EXPECT_EQ(after->storeUse().made, 1u);
  auto again = compile();
  EXPECT_EQ(again->blocks()[0].tiling, expected);
  EXPECT_EQ(again->storeUse().found, 2u);
  EXPECT_EQ(again->storeUse().made, 0u);
}

TEST_F(StoredTunings, ThatAreTheDefaultAreToldToo) {
  auto before = compile();
  keep(before->blocks()[0].tuningKey, TunedKernel{}.bytes());
  auto after = compile();
  EXPECT_EQ(after->blocks()[0].tiling, before->blocks()[0].tiling);
  EXPECT_TRUE(after->blocks()[0].tuned && saysTuned(*after));
  EXPECT_EQ(after->storeUse().found, 2u);
}

TEST_F(StoredTunings, AreForTheSameBlockAndProcessorOnly) {
  auto before = compile();
  keep(before->blocks()[0].tuningKey, TunedKernel{{.vectors = 1}}.bytes());
  ASSERT_TRUE(compile()->blocks()[0].tuned);
  const driver::CompileOptions same = options_;
  auto isTuned = [&] {
    auto model = compile();
    options_ = same;
    // A choice that is not for it is no reason for another tiling.
    EXPECT_EQ(model->blocks()[0].tuned, model->blocks()[0].tiling != model->tilingWith(0, {}));
    return model->blocks()[0].tuned;
  };
  options_.dims["n"] = 65;
  EXPECT_FALSE(isTuned());
  options_.targetCpu = "x86-64-v3";
  EXPECT_FALSE(isTuned());
  options_.precision = driver::Precision::Bf16;
  EXPECT_FALSE(isTuned());
  options_.without = {"panels"};
  EXPECT_FALSE(isTuned());
  options_.without = {"tuned"};
  EXPECT_FALSE(isTuned());
  options_.store.directory.clear();
  EXPECT_FALSE(isTuned());
  EXPECT_TRUE(isTuned());
}

TEST_F(StoredTunings, GivenOnesGoFirst) {
  auto before = compile();
  const std::string &key = before->blocks()[0].tuningKey;
  keep(key, TunedKernel{{.vectors = 1}}.bytes());
  options_.tunings.emplace();
  EXPECT_EQ(compile()->blocks()[0].tiling, before->blocks()[0].tiling);
  (*options_.tunings)[key] = {.vectors = 2};
  EXPECT_EQ(compile()->blocks()[0].tiling, before->tilingWith(0, {.vectors = 2}));
}

TEST_F(StoredTunings, NonsenseIsNoChoice) {
  auto before = compile();
  for (const char *text : {"", "vectors 1", "\x7f\x45\x4c\x46"}) {
    keep(before->blocks()[0].tuningKey, bytesOf(text));
    auto after = compile();
    EXPECT_FALSE(after->blocks()[0].tuned);
    EXPECT_EQ(after->blocks()[0].tiling, before->blocks()[0].tiling);
    EXPECT_EQ(after->storeUse().problem, "");
  }
}

} // namespace
