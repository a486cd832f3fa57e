//===- row_plan_test.cpp - Places of promised rows ------------------------===//

#include "runtime/schedule/recorded_windows.h"
#include "runtime/schedule/row_plan.h"
#include "runtime/schedule/when.h"
#include "tests/runtime/tree_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace sheaf::rt {
namespace {

/// Kernels: Pair reads two tensors of any length and makes one; Part reads one and writes a part
/// of a tensor that another record has reserved; Sum reads a list of rows of one granule. Each has
/// a number, too.
enum : uint32_t { kPair, kPart, kSum };

Model model() {
  Model model;
  model.paramGranules = 4;
  auto kernel = [&](std::vector<RecordWord> layout) {
    KernelDesc &desc = model.kernels.emplace_back();
    desc.layout = std::move(layout);
    desc.words = static_cast<uint32_t>(desc.layout.size());
  };
  RecordWord out{RecordWord::Out, "out"};
  auto tensor = [](const char *name) { return RecordWord{RecordWord::Row, name, {-1, 16}}; };
  auto extent = [](const char *name) { return RecordWord{RecordWord::Extent, name}; };
  RecordWord number = extent("number");
  kernel({tensor("x"), extent("x.0"), tensor("y"), extent("y.0"), number, out});
  kernel({tensor("x"), extent("x.0"), number, out});
  model.kernels.back().results = {{DType::F32, {{{1, {1}}}, {{16, {}}}}}}; // f32[x.0, 16]
  kernel({{RecordWord::List, "xs", {16}}, extent("xs.0"), number, out});
  return model;
}

/// Records of random sizes, with all that host code makes of them, and a memory of tags.
class Flush {
public:
  explicit Flush(uint64_t seed) : random_(seed) {}

  /// What a record reads and makes, as host code named it.
  struct Record {
    uint32_t kernel;
    std::vector<std::pair<uint32_t, uint32_t>> reads; ///< id and granules
    uint32_t out, granules;
  };

  /// `grows`: some are appended to tensors that have memory at once.
  void record(int count, bool grows = true) {
    tensors_ = {{0, 1, 0}, {1, 3, 0}};
    for (int i = 0; i < count; ++i)
      switch (below(grows ? 9 : 8)) {
      case 8:
        grow();
        break;
      case 0:
        stack();
        break;
      case 1:
        sum();
        break;
      case 2: // a part of one
        if (Tensor t = any(); t.granules > 1)
          tensors_.push_back({t.id + 1, t.granules - 1, t.depth});
        break;
      default:
        pair();
      }
    toSchedule();
    for (int i = 0; i < 3; ++i)
      handles_.push_back(TensorHandle{any().id, 7}.pack());
  }
  /// A node of all pairs of nodes, one subtree after the other.
  void tree(uint32_t height) {
    handles_.push_back(TensorHandle{node(height).id, 7}.pack());
    toSchedule();
  }
  /// A last tensor, of which a part in the middle is a result, and one of no size after it.
  void large(uint32_t granules) {
    uint32_t id = allocate(granules);
    launches_.push_back({0, kPart, {0, 1, 0, static_cast<int32_t>(id)}});
    uint32_t none = allocate(0);
    launches_.push_back(
        {1, kPart, {static_cast<int32_t>(id + granules / 2), 1, 0, static_cast<int32_t>(none)}});
    for (const auto &[depth, kernel, words] : launches_)
      schedule_.push_back({depth, kernel, words.data(), 1});
    handles_ = {TensorHandle{id + granules - 1, 7}.pack(), TensorHandle{none, 7}.pack()};
  }
  uint32_t handle(size_t number) const { return TensorHandle::unpack(handles_[number]).id; }
  /// What stays goes one after the other from `staying` on.
  void apply(uint64_t staying, uint64_t passing) {
    EXPECT_TRUE(plan_.placeStaying([&](uint64_t granules) {
      staying += granules;
      return staying - granules;
    }));
    plan_.apply(passing);
  }

  /// `windows`: about so many.
  bool plan(uint64_t windows = 1) {
    for (Slot &handle : handles_)
      needed_.push_back(&handle);
    asked_ = handles_;
    if (windows > 1) {
      size_t launches = schedule_.size();
      EXPECT_TRUE(windows_.find(schedule_, promised_, rows_));
      uint64_t cut = windows_.cut(promised_.granules() / windows + 1, schedule_, 0);
      EXPECT_GE(cut, 1U);
      EXPECT_LE(cut, windows);
      EXPECT_GE(schedule_.size(), launches);
    }
    return plan_.make(schedule_, promised_, needed_, rows_);
  }

  /// Runs what was planned on tags: what each record reads is what its makers wrote. `backwards`:
  /// the launches of one depth.
  void run(bool backwards) {
    // Above all that has memory before.
    uint64_t staying = 1000000, passing = staying + plan_.staying();
    apply(staying, passing);
    std::vector<RowPlan::Release> releases = plan_.releases();
    std::map<uint64_t, int> named, placed; ///< tags, by granule
    auto released = releases.begin();
    int tag = 0;
    for (size_t begin = 0, end; begin < schedule_.size(); begin = end) {
      end = groupEnd(schedule_, begin);
      for (size_t i = 0; i < end - begin; ++i)
        launch(schedule_[backwards ? end - 1 - i : begin + i], named, placed, tag);
      for (; released != releases.end() && released->launches == end; ++released)
        for (uint64_t g = released->rows.begin; g < released->rows.end(); ++g)
          EXPECT_EQ(placed.erase(g), 1U) << "released, but no one's";
    }
    EXPECT_EQ(released, releases.end());
    for (const auto &[granule, value] : placed)
      EXPECT_LT(granule, passing) << "needed by no one, and not released";
    for (size_t i = 0; i < handles_.size(); ++i) {
      TensorHandle before = TensorHandle::unpack(asked_[i]),
                   now = TensorHandle::unpack(handles_[i]);
      EXPECT_EQ(now.depth, 7U);
      EXPECT_FALSE(PromisedRows::has(now.id));
      if (!PromisedRows::has(before.id))
        EXPECT_EQ(now.id, before.id);
      else if (named.contains(before.id))
        EXPECT_EQ(placed[now.id], named[before.id]);
    }
  }

  const RowPlan &planned() const { return plan_; }
  uint64_t promised() const { return promised_.granules(); }

private:
  struct Tensor {
    uint32_t id, granules, depth;
  };
  struct Bucket {
    std::vector<int32_t> words;
    int64_t count = 0;
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  Tensor any() { return tensors_[tensors_.size() - 1 - below(uint32_t(tensors_.size())) / 2]; }
  uint32_t allocate(uint32_t granules) {
    return static_cast<uint32_t>(promised_.allocate(granules));
  }

  void add(uint32_t kernel, uint32_t depth, Record record, const std::vector<uint32_t> &words) {
    record.kernel = kernel;
    Bucket &bucket = buckets_[{depth, kernel}];
    for (uint32_t word : words)
      bucket.words.push_back(static_cast<int32_t>(word));
    bucket.words.push_back(static_cast<int32_t>(records_.size()));
    bucket.words.push_back(static_cast<int32_t>(record.out));
    ++bucket.count;
    records_.push_back(std::move(record));
  }
  void toSchedule() {
    for (auto &[key, bucket] : buckets_)
      schedule_.push_back({key.first, key.second, bucket.words.data(), bucket.count});
  }
  Tensor node(uint32_t height) {
    Tensor left{0, 1, 0}, right{0, 1, 0};
    if (height > 0) {
      left = node(height - 1);
      right = node(height - 1);
    }
    Tensor made{allocate(1), 1, height + 1};
    add(kPair, height, {0, {{left.id, 1}, {right.id, 1}}, made.id, 1}, {left.id, 1, right.id, 1});
    return made;
  }
  void pair() {
    Tensor x = any(), y = any();
    uint32_t granules = below(9) ? 1 + below(24) : 0, depth = std::max(x.depth, y.depth);
    uint32_t id = allocate(granules);
    add(kPair, depth, {0, {{x.id, x.granules}, {y.id, y.granules}}, id, granules},
        {x.id, x.granules, y.id, y.granules});
    tensors_.push_back({id, granules, depth + 1});
  }
  /// As stack(): the first record reserves the rows of all.
  void stack() {
    uint32_t count = 1 + below(4), total = 0, depth = 0, id = 0;
    std::vector<Tensor> parts;
    for (uint32_t i = 0; i < count; ++i) {
      parts.push_back(any());
      total += parts.back().granules;
    }
    uint32_t at = 0;
    for (const Tensor &part : parts) {
      uint32_t own = allocate(at == 0 && id == 0 ? total : 0);
      id = id ? id : own;
      add(kPart, part.depth, {0, {{part.id, part.granules}}, id + at, part.granules},
          {part.id, part.granules});
      at += part.granules;
      depth = std::max(depth, part.depth + 1);
    }
    tensors_.push_back({id, total, depth});
  }
  /// As append(): rows that have memory before anything runs.
  void grow() {
    Tensor part = any();
    if (part.granules > kRoom)
      return pair();
    if (room_.left < part.granules)
      room_ = {{static_cast<uint32_t>(rows_.allocateNow(kRoom)), 0, 0}, kRoom};
    uint32_t at = room_.grown.id + room_.grown.granules;
    add(kPart, part.depth, {0, {{part.id, part.granules}}, at, part.granules},
        {part.id, part.granules});
    room_.left -= part.granules;
    room_.grown.granules += part.granules;
    room_.grown.depth = std::max(room_.grown.depth, part.depth + 1);
    tensors_.push_back(room_.grown);
  }
  void sum() {
    auto table = static_cast<uint32_t>(rows_.allocateNow(1));
    auto *ids = reinterpret_cast<uint32_t *>(rows_.address(table));
    Record record{0, {}, allocate(2), 2};
    uint32_t depth = 0, count = 0;
    for (uint32_t i = below(5); i > 0; --i) {
      Tensor part = any();
      if (part.granules == 0)
        continue;
      ids[count++] = part.id;
      record.reads.push_back({part.id, 1});
      depth = std::max(depth, part.depth);
    }
    tensors_.push_back({record.out, 2, depth + 1});
    add(kSum, depth, std::move(record), {table, count});
  }

  void launch(const ScheduledBucket &bucket, std::map<uint64_t, int> &named,
              std::map<uint64_t, int> &placed, int &tag) {
    uint32_t words = described_.kernels[bucket.kernel].words;
    for (int64_t r = 0; r < bucket.count; ++r) {
      const int32_t *word = bucket.records + r * words;
      const Record &record = records_[static_cast<size_t>(word[words - 2])];
      EXPECT_EQ(record.kernel, bucket.kernel);
      size_t next = 0;
      auto check = [&](uint32_t id) {
        auto [before, granules] = record.reads[next++];
        if (!PromisedRows::has(before))
          EXPECT_EQ(id, before);
        if (before >= described_.paramGranules)
          for (uint32_t g = 0; g < granules; ++g) {
            EXPECT_TRUE(named.contains(before + g)) << "read before it is written";
            EXPECT_EQ(placed.contains(id + g) ? placed[id + g] : -1, named[before + g]);
          }
      };
      if (bucket.kernel == kSum) {
        auto *ids =
            reinterpret_cast<const uint32_t *>(rows_.address(static_cast<uint32_t>(word[0])));
        for (int32_t i = 0; i < word[1]; ++i)
          check(ids[i]);
      } else {
        for (uint32_t i = 0; i + 2 < words; i += 2)
          check(static_cast<uint32_t>(word[i]));
      }
      auto out = static_cast<uint32_t>(word[words - 1]);
      ++tag;
      for (uint32_t g = 0; g < record.granules; ++g)
        named[record.out + g] = placed[out + g] = tag;
    }
  }
  std::mt19937_64 random_;
  Model described_ = model();
  MemoryMeter meter_{uint64_t(1) << 30};
  MemoryKind kind_, rowKind_;
  HostRows memory_{described_.paramGranules, uint64_t(1) << 22};
  RowSpace rows_{described_.paramGranules, memory_, meter_, rowKind_, false};
  PromisedRows promised_{meter_, kind_};
  RowWords words_{described_};
  RecordedWindows windows_{described_, words_, meter_, kind_};
  RowPlan plan_{described_, words_, meter_, kind_};
  std::vector<Tensor> tensors_;
  static constexpr uint32_t kRoom = 60;
  struct Room {
    Tensor grown;
    uint32_t left;
  } room_{};
  std::map<std::pair<uint32_t, uint32_t>, Bucket> buckets_;
  std::vector<Record> records_; ///< by number
  Schedule schedule_;
  struct One {
    uint32_t depth, kernel;
    std::vector<int32_t> words;
  };
  std::vector<One> launches_;
  std::vector<Slot> handles_, asked_;
  std::vector<Slot *> needed_;
};

TEST(RowPlan, NothingIsWrittenOverThatIsNeeded) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Flush flush(seed);
    flush.record(2 + static_cast<int>(seed));
    ASSERT_TRUE(flush.plan());
    flush.run(seed % 2 == 0);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(RowPlan, HoldsInWindowsOfRecording) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    Flush flush(2000 + seed);
    flush.record(2 + 2 * static_cast<int>(seed));
    ASSERT_TRUE(flush.plan(2 + seed % 7 * (seed % 11)));
    flush.run(seed % 2 == 0);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

/// What one branch of a tree leaves is all that the next ones must go on beside.
TEST(RowPlan, NeedsLittleInWindows) {
  std::vector<uint64_t> least;
  for (uint64_t windows : {1, 8, 64}) {
    Flush flush(0);
    flush.tree(12);
    ASSERT_TRUE(flush.plan(windows));
    least.push_back(flush.planned().least());
    flush.run(false);
  }
  EXPECT_GE(least[0], 4096u);
  EXPECT_LE(least[1], least[0] / 6);
  EXPECT_LE(least[2], least[0] / 40);
}

TEST(RowPlan, TakesLittleMoreThanIsNeededAtOneTime) {
  double worst = 0, sum = 0;
  constexpr int kFlushes = 40;
  for (uint64_t seed = 0; seed < kFlushes; ++seed) {
    Flush flush(1000 + seed);
    flush.record(2000, /*grows=*/false);
    ASSERT_TRUE(flush.plan());
    const RowPlan &plan = flush.planned();
    uint64_t taken = plan.staying() + plan.passing();
    EXPECT_GE(taken, plan.least());
    EXPECT_LE(taken, flush.promised());
    double ratio = static_cast<double>(taken) / static_cast<double>(plan.least());
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  EXPECT_LE(worst, 1.1);
  EXPECT_LE(sum / kFlushes, 1.06);
}

TEST(RowPlan, FindsPartsOfLargeTensors) {
  for (uint32_t granules : {16U, 100U, 16383U, 16384U, 16385U, 1000000U}) {
    Flush flush(1);
    flush.large(granules);
    ASSERT_TRUE(flush.plan());
    EXPECT_EQ(flush.planned().staying(), granules);
    flush.apply(1000, 5000000);
    EXPECT_EQ(flush.handle(0), 1000 + granules - 1);
    EXPECT_EQ(flush.handle(1), 1000 + granules);
  }
}

TEST(RowPlan, ForgetsFewOfManyPieces) {
  // More ranges are free at one time than are looked through.
  Flush flush(7);
  flush.record(64000, /*grows=*/false);
  ASSERT_TRUE(flush.plan());
  uint64_t taken = flush.planned().staying() + flush.planned().passing();
  EXPECT_LE(static_cast<double>(taken), 1.1 * static_cast<double>(flush.planned().least()));
}

TEST(RowPlan, NamesAreFoundAgain) {
  for (const NamedWhen &named : kWhens)
    EXPECT_EQ(whenByName(named.name), named.when);
  EXPECT_EQ(whenByName("sometimes"), std::nullopt);
}

} // namespace
} // namespace sheaf::rt
