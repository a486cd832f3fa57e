//===- ParamShapes.cpp - Shapes of params, and dims that make them --------===//
//
// How extents follow from dims is found by trying: the front end alone runs with other values,
// which takes all that dims, layers and extents can express as it is.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/ParamShapes.h"

#include "compiler/driver/Pipeline.h"
#include "compiler/model/ModelTypes.h"

namespace sheaf::driver {

namespace {

struct ShapesAndDims {
  Shapes shapes;
  std::map<std::string, int64_t> dims;
};

ShapesAndDims shapesWith(const SourceFile &source, const CompileOptions &options) {
  Diagnostics unheard(source);
  Compilation compilation(source, options, unheard);
  ShapesAndDims found;
  try {
    if (!compilation.run(Until::Program))
      return found;
    for (const rt::ParamDesc &param : host::layoutParams(*compilation.program).params)
      if (!param.synthetic)
        found.shapes[param.name] = param.shape;
  } catch (const UserError &) {
    return {}; // too large with these dims
  }
  found.dims = compilation.model.dims;
  return found;
}

/// One extent that is not what it should be.
struct WrongExtent {
  std::string param;
  size_t axis;
  int64_t is, wanted;
};

std::vector<WrongExtent> wrongExtents(const Shapes &shapes, const Shapes &wanted) {
  std::vector<WrongExtent> wrong;
  for (const auto &[param, shape] : wanted) {
    auto it = shapes.find(param);
    for (size_t axis = 0; it != shapes.end() && axis < shape.size(); ++axis)
      if (it->second[axis] != shape[axis])
        wrong.push_back({param, axis, it->second[axis], shape[axis]});
  }
  return wrong;
}

bool sameRanks(const Shapes &shapes, const Shapes &wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto &one) {
    auto it = shapes.find(one.first);
    return it == shapes.end() || it->second.size() == one.second.size();
  });
}

/// A dim and the value that makes one wrong extent right, of the extent that depends on the fewest
/// dims; nothing when no dim does.
std::optional<std::pair<std::string, int64_t>>
bestChange(const SourceFile &source, const CompileOptions &options, const ShapesAndDims &now,
           const std::vector<WrongExtent> &wrong, const std::map<std::string, int64_t> &changed) {
  std::vector<std::vector<std::pair<std::string, int64_t>>> makes(wrong.size());
  std::vector<size_t> depends(wrong.size());
  for (const auto &[dim, value] : now.dims) {
    if (changed.contains(dim))
      continue;
    // Twice the value: what must divide it still does.
    CompileOptions twice = options;
    twice.dims[dim] = 2 * value;
    Shapes shapes = shapesWith(source, twice).shapes;
    for (size_t i = 0; i < wrong.size(); ++i) {
      const WrongExtent &extent = wrong[i];
      auto it = shapes.find(extent.param);
      if (it == shapes.end() || it->second[extent.axis] == extent.is)
        continue;
      ++depends[i];
      int64_t slope = it->second[extent.axis] - extent.is, rest = extent.wanted - extent.is;
      if (rest * value % slope == 0 && value + rest * value / slope > 0)
        makes[i].emplace_back(dim, value + rest * value / slope);
    }
  }
  std::optional<size_t> best;
  for (size_t i = 0; i < wrong.size(); ++i)
    if (!makes[i].empty() && (!best || depends[i] < depends[*best]))
      best = i;
  return best ? std::optional(makes[*best].front()) : std::nullopt;
}

} // namespace

Shapes paramShapes(const SourceFile &source, const CompileOptions &options) {
  return shapesWith(source, options).shapes;
}

std::map<std::string, int64_t> dimsForShapes(const SourceFile &source,
                                             const CompileOptions &options, const Shapes &wanted) {
  CompileOptions trial = options;
  std::map<std::string, int64_t> changed;
  for (;;) {
    ShapesAndDims now = shapesWith(source, trial);
    if (now.shapes.empty() || !sameRanks(now.shapes, wanted))
      return {};
    std::vector<WrongExtent> wrong = wrongExtents(now.shapes, wanted);
    if (wrong.empty())
      return changed;
    std::optional<std::pair<std::string, int64_t>> change =
        bestChange(source, trial, now, wrong, changed);
    if (!change)
      return {};
    changed.insert(*change);
    trial.dims[change->first] = change->second;
  }
}

std::map<std::string, std::string> vocabularyTables(const SourceFile &source,
                                                    const CompileOptions &options) {
  std::map<std::string, std::string> tables;
  ShapesAndDims now = shapesWith(source, options);
  for (const auto &[dim, value] : now.dims) {
    std::optional<std::string> vocabulary = vocabularyOfDim(dim);
    if (!vocabulary)
      continue;
    CompileOptions more = options;
    more.dims[dim] = value + 1;
    Shapes shapes = shapesWith(source, more).shapes;
    for (const auto &[param, shape] : now.shapes) {
      std::vector<int64_t> longer = shape;
      if (longer.empty() || longer[0] != value)
        continue;
      ++longer[0];
      if (auto it = shapes.find(param); it != shapes.end() && it->second == longer)
        tables[param] = *vocabulary;
    }
  }
  return tables;
}

} // namespace sheaf::driver
