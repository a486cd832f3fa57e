//===- Attribution.cpp - Whose work a kernel does -------------------------===//
#include "compiler/driver/Attribution.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

using namespace mlir;

namespace sheaf::driver {

namespace {

/// Of a kernel's work: a layer that has less does not give it its name.
constexpr double kNamingPart = 0.05;
/// At most so many weights or operators stand in a name.
constexpr size_t kInName = 3;

void append(std::vector<std::string> &path, std::string name) {
  // What prepares an entry's arguments has its name, too.
  if (path.empty() || path.back() != name)
    path.push_back(std::move(name));
}

std::vector<StringRef> componentsOf(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  return {parts.begin(), parts.end()};
}

/// What several layers have in common: `encoder.layer.*.dense`, or the layer around them. Empty
/// when there is none.
std::string commonName(const std::vector<std::string> &layers) {
  std::vector<StringRef> common = componentsOf(layers.front());
  bool sameLength = true;
  for (const std::string &layer : layers)
    sameLength &= componentsOf(layer).size() == common.size();
  for (const std::string &layer : layers) {
    std::vector<StringRef> own = componentsOf(layer);
    for (size_t i = 0; i < common.size(); ++i) {
      if (i < own.size() && own[i] == common[i])
        continue;
      // Elements of a list of layers differ by their numbers alone.
      unsigned number = 0;
      bool isNumber = sameLength && !own[i].getAsInteger(10, number) &&
                      (common[i] == "*" || !common[i].getAsInteger(10, number));
      if (isNumber) {
        common[i] = "*";
        continue;
      }
      common.resize(i);
      break;
    }
  }
  return fmt::format("{}", fmt::join(std::vector<std::string>(common.begin(), common.end()), "."));
}

/// `.{query,key}` of `self.query` and `self.key`, `.{2-5}` of many elements of a list: what follows
/// `common` in each. Empty when something else does, or too much.
std::string restOf(const std::vector<std::string> &layers, const std::string &common) {
  std::vector<std::string> rests;
  unsigned least = ~0U, most = 0, number = 0;
  bool areNumbers = true;
  for (const std::string &layer : layers) {
    StringRef rest = layer;
    if (!rest.consume_front(common + "."))
      return ""; // the layer around them among them
    rest = rest.split('.').first;
    areNumbers &= !rest.getAsInteger(10, number);
    least = std::min(least, number);
    most = std::max(most, number);
    if (!llvm::is_contained(rests, rest))
      rests.push_back(rest.str());
  }
  if (rests.size() <= kInName)
    return fmt::format(".{{{}}}", fmt::join(rests, ","));
  return areNumbers ? fmt::format(".{{{}-{}}}", least, most) : "";
}

} // namespace

Attribution::Attribution(ModuleOp program, const std::string &entry) : symbols_(program) {
  for (auto param : program.getOps<ir::ParamOp>()) {
    StringRef name = param.getSymName();
    if (param->hasAttr("sheaf.synthetic")) {
      synthetic_.insert(name.str());
      continue;
    }
    for (size_t dot = name.find('.'); dot != StringRef::npos; dot = name.find('.', dot + 1))
      layers_.insert(name.take_front(dot).str());
  }
  // The shortest way from the entry to each function.
  std::deque<func::FuncOp> next;
  if (auto func = symbols_.lookup<func::FuncOp>(entry)) {
    ways_[func.getName()] = {ir::nameOf(func)};
    next.push_back(func);
  }
  while (!next.empty()) {
    func::FuncOp func = next.front();
    next.pop_front();
    func.walk([&](func::CallOp call) {
      auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
      if (!callee || ways_.contains(callee.getName()))
        return;
      Path way = ways_[func.getName()];
      for (std::string &name : ir::inlinedInto(call.getLoc()))
        append(way, std::move(name));
      append(way, ir::nameOf(callee));
      ways_[callee.getName()] = std::move(way);
      next.push_back(callee);
    });
  }
}

std::string Attribution::layerOfParam(StringRef param) const {
  size_t dot = param.rfind('.');
  return param.take_front(dot).str(); // all of it without one
}

std::string Attribution::layerOfCalls(const Path &calls) const {
  for (const std::string &function : llvm::reverse(calls))
    if (size_t dot = function.rfind('.'); dot != std::string::npos)
      if (std::string layer = function.substr(0, dot); layers_.contains(layer))
        return layer;
  return "";
}

std::string Attribution::weightOf(const host::KernelInstance &instance, Operation *op) const {
  ir::BlockOp block = instance.block;
  for (Value operand : op->getOperands()) {
    auto view = operand.getDefiningOp<ir::ApplyOp>();
    for (; view && view->getNumOperands() == 1; view = operand.getDefiningOp<ir::ApplyOp>())
      operand = view->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(operand);
    auto arguments = static_cast<unsigned>(block.getNumArgs());
    if (!argument || argument.getArgNumber() < arguments ||
        argument.getArgNumber() - arguments >= instance.weights.size())
      continue;
    std::string name = instance.weights[argument.getArgNumber() - arguments].getValue().str();
    if (!synthetic_.contains(name))
      return name;
  }
  return "";
}

Attribution::Path Attribution::wayTo(Operation *site) const {
  auto func = site->getParentOfType<func::FuncOp>();
  if (!func)
    return {};
  auto way = ways_.find(func.getName());
  return way == ways_.end() ? Path{ir::nameOf(func)} : way->second;
}

std::vector<PartShare> Attribution::partsOf(const host::KernelInstance &instance,
                                            const kernels::Kernel &kernel) {
  double sum = 0;
  std::map<std::string, double> ofWeights;
  std::vector<std::string> weights;
  for (const auto &[op, work] : kernel.work) {
    sum += work;
    weights.push_back(weightOf(instance, op));
    if (!weights.back().empty())
      ofWeights[layerOfParam(weights.back())] += work;
  }
  // Beside products, what stands in no layer's function belongs to theirs.
  std::string most;
  for (const auto &[layer, work] : ofWeights)
    if (most.empty() || work > ofWeights.at(most))
      most = layer;

  std::map<std::pair<std::string, Path>, double> shares;
  for (Operation *site : instance.sites) {
    // The block's own operators are those of the first place that recorded it.
    SmallVector<Location> own;
    ArrayAttr here;
    auto record = dyn_cast<ir::RecordOp>(site);
    auto fused = dyn_cast<FusedLoc>(site->getLoc());
    if (record && fused) {
      here = dyn_cast_or_null<ArrayAttr>(fused.getMetadata());
      symbols_.lookup<ir::BlockOp>(record.getBlock()).getBody().walk([&](ir::ApplyOp apply) {
        own.push_back(apply.getLoc());
      });
    }
    llvm::DenseMap<Location, Location> places;
    if (here && here.size() == own.size())
      for (auto [shared, place] : llvm::zip(own, here))
        places.try_emplace(shared, Location(cast<LocationAttr>(place)));
    auto add = [&](Location where, const std::string &weight, double share) {
      if (auto place = places.find(where); place != places.end())
        where = place->second;
      Path calls = wayTo(site);
      for (std::string &name : ir::inlinedInto(where))
        append(calls, std::move(name));
      std::string layer = weight.empty() ? layerOfCalls(calls) : layerOfParam(weight);
      shares[{layer.empty() ? most : layer, calls}] +=
          share / static_cast<double>(instance.sites.size());
    };
    if (sum <= 0)
      add(site->getLoc(), "", 1);
    for (size_t i = 0; sum > 0 && i < kernel.work.size(); ++i)
      if (kernel.work[i].second > 0)
        add(kernel.work[i].first->getLoc(), weights[i], kernel.work[i].second / sum);
  }
  std::vector<PartShare> parts;
  for (auto &[key, share] : shares)
    parts.push_back({key.first, key.second, share});
  std::sort(parts.begin(), parts.end(), [](const PartShare &a, const PartShare &b) {
    return std::tie(b.share, a.layer, a.calls) < std::tie(a.share, b.layer, b.calls);
  });
  return parts;
}

std::string Attribution::nameOf(const host::KernelInstance &instance, const kernels::Kernel &kernel,
                                std::span<const PartShare> parts) {
  ir::BlockOp block = instance.block;
  std::map<std::string, double> byLayer;
  for (const PartShare &part : parts)
    byLayer[part.layer] += part.share;
  std::vector<std::string> layers;
  bool inLayers = true;
  for (const auto &[layer, share] : byLayer)
    if (share >= kNamingPart) {
      layers.push_back(layer);
      inLayers &= layers_.contains(layer);
    }
  std::vector<std::pair<double, std::string>> operators, factors, weights;
  auto count = [](auto &list, const std::string &name, double work) {
    auto same = std::find_if(list.begin(), list.end(),
                             [&](const auto &each) { return each.second == name; });
    if (same == list.end())
      list.emplace_back(work, name);
    else
      same->first += work;
  };
  double sum = 0;
  for (const auto &[op, work] : kernel.work) {
    sum += work;
    count(operators, cast<ir::ApplyOp>(op).getOp().str(), work);
    if (std::string weight = weightOf(instance, op); !weight.empty())
      count(passes::batchRule<ops::Product>(op) ? factors : weights, weight, work);
  }
  if (kernel.work.empty()) {
    block.getBody().walk([&](ir::ApplyOp apply) { count(operators, apply.getOp().str(), 1); });
    sum = static_cast<double>(operators.size());
  }
  auto listOf = [&](auto list) {
    std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
      return std::tie(b.first, a.second) < std::tie(a.first, b.second);
    });
    std::string text;
    for (size_t i = 0; i < std::min(list.size(), kInName); ++i)
      if (i == 0 || list[i].first >= kNamingPart * sum)
        text += (i ? "+" : "") + list[i].second;
    return text;
  };

  std::string name, more = listOf(operators);
  std::string common = inLayers && !layers.empty() ? commonName(layers) : "";
  if (!common.empty()) {
    name = common + (layers.size() > 1 ? restOf(layers, common) : "");
  } else {
    name =
        parts.empty() || parts[0].calls.empty() ? block.getSymName().str() : parts[0].calls.back();
    if (!factors.empty() || !weights.empty())
      name += "(" + listOf(factors.empty() ? weights : factors) + ")";
    else
      name += "(" + std::exchange(more, "") + ")";
  }
  bool goesBack = block.getSymName().ends_with(".back");
  std::string back = goesBack ? ".back" : "";
  std::string result = name + back;
  // Operators tell kernels of one layer apart, else numbers do.
  if (taken_.contains(result) && !more.empty())
    name += "(" + more + ")";
  result = name + back;
  for (int number = 2; !taken_.insert(result).second; ++number)
    result = fmt::format("{}#{}{}", name, number, back);
  return result;
}

} // namespace sheaf::driver
