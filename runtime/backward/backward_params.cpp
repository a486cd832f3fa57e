#include "runtime/backward/backward.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace sheaf::rt {

namespace {

/// Granules that one record sums or clears.
constexpr int64_t kSumGranules = 4, kClearGranules = 4096;

/// The innermost rows of a parameter.
int64_t strideOf(const ParamDesc &param) {
  return param.shape.empty() ? 1 : rowGranules(param.shape.back(), param.dtype);
}

int64_t ceilDivide(int64_t n, int64_t by) { return (n + by - 1) / by; }

/// Into how many parts a matrix is cut, down and across.
struct Parts {
  int64_t down, across;
};

/// The cut with the least work for the busiest thread, counted for one row of both factors. Threads
/// take parts in equal numbers, and every part copies the columns of the rows that it needs.
Parts partsFor(int64_t rows, int64_t columns, const ProductUnits &units, int64_t threads) {
  Parts least{ceilDivide(rows, kProductRows), ceilDivide(columns, kProductColumns)}, best = least;
  if (threads == 1)
    return best;
  int64_t bestCost = INT64_MAX;
  int64_t mostDown = std::min(ceilDivide(rows, units.rows), least.down + threads);
  int64_t mostAcross = std::min(ceilDivide(columns, units.columns), least.across + threads);
  for (int64_t down = least.down; down <= mostDown; ++down)
    for (int64_t across = least.across; across <= mostAcross; ++across) {
      int64_t height = ceilDivide(ceilDivide(rows, units.rows), down) * units.rows;
      int64_t width = ceilDivide(ceilDivide(columns, units.columns), across) * units.columns;
      int64_t cost =
          ceilDivide(down * across, threads) * (height * width + units.copyCost * (height + width));
      if (cost < bestCost)
        best = {down, across}, bestCost = cost;
    }
  return best;
}

/// [0, size) in parts of whole units, as equal as they can be.
class Cuts {
public:
  Cuts(int64_t size, int64_t parts, int64_t unit)
      : size_(size), parts_(parts), unit_(unit), units_(ceilDivide(size, unit)) {}
  /// Where part i begins; of i = parts the end.
  int64_t begin(int64_t i) const { return std::min(size_, units_ * i / parts_ * unit_); }

private:
  int64_t size_, parts_, unit_, units_;
};

} // namespace

uint32_t Backward::paramOf(uint32_t granule) const {
  auto behind = std::upper_bound(model_.params.begin(), model_.params.end(), granule,
                                 [](uint32_t g, const ParamDesc &param) { return g < param.id; });
  return static_cast<uint32_t>(behind - model_.params.begin() - 1);
}

void Backward::addProducts(const Job &job, const uint32_t *right, uint32_t sums,
                           std::vector<ProductRecord> &products) const {
  const ParamDesc &param = model_.params[job.param];
  const ProductUnits &units = device_.facts().products;
  auto [down, across] = partsFor(job.rowCount, job.columnCount, units, device_.facts().threads);
  Cuts rows(job.rowCount, down, units.rows), columns(job.columnCount, across, units.columns);
  auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  for (int64_t i = 0; i < down; ++i)
    for (int64_t j = 0; j < across; ++j) {
      ProductRecord record{};
      record.to = gradientBase_ + param.id;
      record.rowStride = word(strideOf(param));
      record.rowBegin = word(job.rowBegin + rows.begin(i));
      record.rows = word(rows.begin(i + 1) - rows.begin(i));
      record.columnBegin = word(job.columnBegin + columns.begin(j));
      record.columns = word(columns.begin(j + 1) - columns.begin(j));
      record.leftBegin = word(rows.begin(i));
      record.rightBegin = word(columns.begin(j));
      record.left = job.left.data();
      record.right = right;
      record.count = word(static_cast<int64_t>(job.right.size()));
      record.add = job.add;
      record.sums = i == 0 ? sums : 0;
      products.push_back(record);
    }
}

/// Products that take the same columns of the same right rows one after the other, each group
/// where its first one is: these rows are copied once for all of them.
static void joinRights(std::vector<ProductRecord> &products) {
  std::map<std::pair<const uint32_t *, uint32_t>, size_t> numberOf;
  std::vector<std::vector<ProductRecord>> groups;
  for (const ProductRecord &product : products) {
    auto [entry, isNew] = numberOf.try_emplace({product.right, product.rightBegin}, groups.size());
    if (isNew)
      groups.emplace_back();
    groups[entry->second].push_back(product);
  }
  products.clear();
  for (const std::vector<ProductRecord> &group : groups)
    products.insert(products.end(), group.begin(), group.end());
}

/// Makes a launch of products that may run side by side. Each thread is given a run of as many
/// records: they are dealt to these runs, so that of the parts of a product, which are alike, each
/// has its share.
void Backward::flushProducts(std::vector<ProductRecord> &products, uint32_t depth) {
  if (products.empty())
    return;
  unsigned threads = device_.facts().threads;
  if (threads == 1)
    joinRights(products);
  std::vector<int32_t> all;
  for (size_t thread = 0; thread < threads; ++thread)
    for (size_t i = thread; i < products.size(); i += threads)
      appendRecord(all, products[i]);
  int32_t *words = allocateWords(static_cast<int64_t>(all.size()));
  std::copy(all.begin(), all.end(), words);
  schedule_.push_back({depth, nativeKernel(model_, NativeKernel::Product), words,
                       static_cast<int64_t>(all.size()) / kRecordWords<ProductRecord>});
}

/// For each product that runs now, where the gradient is that is the sum of the product's right
/// rows (ProductRecord::sums): that of a bias, for which these rows are read only once then. Marks
/// its job as done.
std::vector<uint32_t> Backward::sumsBesideProducts(std::span<int> level, int now) const {
  std::vector<uint32_t> sums(jobs_.size(), 0);
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Job &sum = jobs_[i];
    const std::vector<int64_t> &shape = model_.params[sum.param].shape;
    if (level[i] != now || sum.kind == WeightGradient::Product || shape.size() != 1)
      continue;
    for (size_t j = 0; j < jobs_.size(); ++j) {
      const Job &product = jobs_[j];
      if (level[j] == now && product.kind == WeightGradient::Product && sums[j] == 0 &&
          product.columnCount == shape[0] && product.right == sum.right) {
        sums[j] = gradientBase_ + model_.params[sum.param].id;
        level[i] = -1;
        break;
      }
    }
  }
  return sums;
}

/// Makes records that clear the gradient of a parameter but for these rows.
void Backward::clearBeside(uint32_t which, const std::vector<uint32_t> &rows) {
  const ParamDesc &param = model_.params[which];
  auto granules = static_cast<uint32_t>(tensorGranules(param.shape, param.dtype));
  auto stride = static_cast<uint32_t>(strideOf(param));
  uint32_t at = 0;
  auto clearTo = [&](uint32_t end) {
    for (; at < end; at += std::min<uint32_t>(kClearGranules, end - at))
      appendRecord(sums_, SumRecord{gradientBase_ + param.id + at,
                                    std::min<uint32_t>(kClearGranules, end - at), 0, 0, 0,
                                    static_cast<uint32_t>(DType::F32), nullptr});
  };
  for (uint32_t row : rows) {
    clearTo(row * stride);
    at += stride;
  }
  clearTo(granules);
}

/// In which order jobs run that meet in one part of a parameter: by level; -1: nothing to do.
std::vector<int> Backward::levelsOfJobs() const {
  std::vector<int> level(jobs_.size(), -1);
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Job &job = jobs_[i];
    if (job.right.empty())
      continue;
    level[i] = 0;
    for (size_t j = 0; j < i; ++j) {
      const Job &other = jobs_[j];
      bool apart = other.param != job.param ||
                   (other.kind == WeightGradient::Product && job.kind == WeightGradient::Product &&
                    (other.rowBegin + other.rowCount <= job.rowBegin ||
                     job.rowBegin + job.rowCount <= other.rowBegin ||
                     other.columnBegin + other.columnCount <= job.columnBegin ||
                     job.columnBegin + job.columnCount <= other.columnBegin));
      if (!apart && level[j] >= 0)
        level[i] = std::max(level[i], level[j] + 1);
    }
  }
  return level;
}

/// Whether products that do not meet write all of a parameter.
bool Backward::isCovered(uint32_t param, std::span<const int> level) const {
  const std::vector<int64_t> &shape = model_.params[param].shape;
  int64_t left = 1;
  for (int64_t extent : shape)
    left *= extent;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Job &job = jobs_[i];
    if (job.param != param || level[i] < 0)
      continue;
    if (level[i] > 0 || job.kind != WeightGradient::Product)
      return false;
    left -= job.rowCount * job.columnCount;
  }
  return left == 0;
}

/// Clears the gradients of parameters with jobs, if these do not write all of them, and runs the
/// jobs; those that meet in one part of a parameter run one after the other.
void Backward::addJobs(uint32_t &depth) {
  std::vector<int> level = levelsOfJobs();
  int deepest = -1;
  for (Job &job : jobs_)
    job.add = true;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Job &job = jobs_[i];
    deepest = std::max(deepest, level[i]);
    if (level[i] < 0)
      continue;
    ParamGradient &gradient = gradients_[job.param];
    if (gradient.kind == ParamGradient::Dense)
      continue;
    bool fresh = gradient.kind == ParamGradient::None && isCovered(job.param, level);
    if (!fresh)
      clearBeside(job.param, gradient.rows);
    for (size_t j = i; fresh && j < jobs_.size(); ++j)
      if (jobs_[j].param == job.param)
        jobs_[j].add = false;
    gradient.kind = ParamGradient::Dense;
    gradient.rows.clear();
  }
  flushSums(depth++);

  std::vector<ProductRecord> products;
  for (int now = 0; now <= deepest; ++now) {
    products.clear();
    std::vector<uint32_t> sums = sumsBesideProducts(level, now);
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const Job &job = jobs_[i];
      if (level[i] != now)
        continue;
      if (job.kind == WeightGradient::Product) {
        // The states of two children meet the same rows: these are known by where their ids are.
        auto same = std::find_if(jobs_.begin(), jobs_.begin() + static_cast<ptrdiff_t>(i),
                                 [&](const Job &other) { return other.right == job.right; });
        addProducts(job, same->right.data(), sums[i], products);
        continue;
      }
      const ParamDesc &param = model_.params[job.param];
      auto granules = static_cast<uint32_t>(tensorGranules(param.shape, param.dtype));
      for (uint32_t at = 0; at < granules; at += kSumGranules)
        appendRecord(sums_, SumRecord{gradientBase_ + param.id + at,
                                      std::min(static_cast<uint32_t>(kSumGranules), granules - at),
                                      at, 1, static_cast<uint32_t>(job.right.size()),
                                      static_cast<uint32_t>(DType::F32), job.right.data()});
    }
    flushSums(depth);
    flushProducts(products, depth);
    ++depth;
  }
}

/// Of the parameters that follow from others those have gradients that depend on one which has.
void Backward::findTrainable(std::span<const ScheduledBucket> folded,
                             std::span<const uint32_t> rows) {
  if (rows.empty())
    return;
  std::vector<bool> depends(sources_.size(), false); // by granule
  for (size_t i = 0; i < model_.params.size(); ++i)
    if (trainable_[i] && !model_.params[i].synthetic)
      std::fill_n(depends.begin() + model_.params[i].id,
                  tensorGranules(model_.params[i].shape, model_.params[i].dtype), true);
  auto anyOf = [&](uint32_t begin, int64_t granules) {
    auto first = depends.begin() + begin;
    return std::find(first, first + granules, true) != first + granules;
  };
  for (const ScheduledBucket &bucket : folded) {
    const Kernel &kernel = kernels_[bucket.kernel];
    const KernelGradient &gradient = *kernel.gradient;
    uint32_t words = model_.kernels[bucket.kernel].words;
    for (int64_t i = 0; i < bucket.count; ++i) {
      const int32_t *record = bucket.records + i * words;
      bool any = std::any_of(gradient.weights.begin(), gradient.weights.end(),
                             [&](const WeightGradient &each) { return trainable_[each.param]; });
      for (size_t a = 0; a < gradient.arguments.size() && !any; ++a)
        any = anyOf(static_cast<uint32_t>(record[gradient.arguments[a].word]),
                    granulesOf(kernel.arguments[a], record));
      std::fill_n(depends.begin() + static_cast<uint32_t>(record[words - 1]),
                  granulesMade(kernel, record), any);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const ParamDesc &param = model_.params[model_.folded[i]];
    trainable_[model_.folded[i]] = anyOf(rows[i], tensorGranules(param.shape, param.dtype));
  }
}

/// The gradients of parameters that follow from others are those of the rows where these were made.
void Backward::seedFolded(std::span<const uint32_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const ParamDesc &param = model_.params[model_.folded[i]];
    const ParamGradient &gradient = gradients_[model_.folded[i]];
    uint32_t from = gradientBase_ + param.id;
    if (gradient.kind == ParamGradient::Dense)
      contribute(rows[i], from, tensorGranules(param.shape, param.dtype), param.dtype);
    auto stride = static_cast<uint32_t>(strideOf(param));
    for (uint32_t row : gradient.rows)
      contribute(rows[i] + row * stride, from + row * stride, stride, param.dtype);
  }
}

/// The gradients of parameters and inputs, to whoever asked for them.
void Backward::showGradients() {
  if (device_.facts().sharesRows)
    return;
  std::vector<Instruction> copies;
  if (inputGradients_.granules > 0)
    copies.push_back(CopyOut{inputGradients_});
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const ParamDesc &param = model_.params[i];
    if (gradients_[i].kind != ParamGradient::None)
      copies.push_back(CopyOut{{uint64_t(gradientBase_) + param.id,
                                static_cast<uint64_t>(tensorGranules(param.shape, param.dtype))}});
  }
  device_.run(copies);
}

/// What scatter() reads.
void Backward::showIndices() {
  if (scattered_.empty())
    return;
  if (!device_.facts().computes)
    throw UserError("the device computes nothing, and gradients go where indices say");
  if (device_.facts().sharesRows)
    return;
  std::vector<Instruction> copies;
  for (const Scattered &each : scattered_)
    copies.push_back(CopyOut{{each.left, static_cast<uint64_t>(tensorGranules(
                                             std::array{each.count}, each.weight->indexType))}});
  device_.run(copies);
}

/// Indices are elements of tensors: they are known when everything before has run.
void Backward::scatter() {
  for (const Scattered &each : scattered_) {
    const ParamDesc &param = model_.params[each.weight->param];
    int64_t granules = strideOf(param);
    for (size_t axis = 1; axis + 1 < param.shape.size(); ++axis)
      granules *= param.shape[axis];
    const uint8_t *indices = rows_.address(each.left);
    for (int64_t i = 0; i < each.count; ++i) {
      int64_t index = 0;
      if (each.weight->indexType == DType::I64) {
        memcpy(&index, indices + i * 8, 8);
      } else {
        int32_t narrow = 0;
        memcpy(&narrow, indices + i * 4, 4);
        index = narrow;
      }
      index = std::clamp<int64_t>(index, 0, param.shape[0] - 1);
      contribute(param.id + static_cast<uint32_t>(index * granules),
                 each.right + static_cast<uint32_t>(i * granules), granules, param.dtype);
    }
  }
}

/// The rows of parameters that records read as their arguments.
void Backward::addParamRows(uint32_t depth) {
  std::sort(paramRows_.begin(), paramRows_.end(),
            [](const ParamRows &a, const ParamRows &b) { return a.param < b.param; });
  std::vector<uint32_t> rows, all;
  for (size_t i = 0; i < paramRows_.size();) {
    uint32_t which = paramRows_[i].param;
    const ParamDesc &param = model_.params[which];
    ParamGradient &gradient = gradients_[which];
    int64_t stride = strideOf(param);
    rows.clear();
    for (; i < paramRows_.size() && paramRows_[i].param == which; ++i)
      for (int64_t at = 0; at < paramRows_[i].granules; at += stride)
        rows.push_back(static_cast<uint32_t>((paramRows_[i].begin - param.id + at) / stride));
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    bool dense = gradient.kind == ParamGradient::Dense;
    for (uint32_t row : rows) {
      uint32_t granule = param.id + static_cast<uint32_t>(row * stride);
      bool add = dense || std::binary_search(gradient.rows.begin(), gradient.rows.end(), row);
      sumTo(gradientBase_ + granule, granule, stride, param.dtype, add);
      std::fill_n(sources_.begin() + granule, stride, 0u);
    }
    if (dense)
      continue;
    all.clear();
    std::set_union(rows.begin(), rows.end(), gradient.rows.begin(), gradient.rows.end(),
                   std::back_inserter(all));
    gradient.rows = all;
    gradient.kind = ParamGradient::Rows;
  }
  flushSums(depth);
}

} // namespace sheaf::rt
