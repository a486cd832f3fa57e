//===- GradientBlock.cpp --------------------------------------------------===//

#include "compiler/ir/GradientBlock.h"

#include "runtime/model/error.h"

#include "mlir/IR/Builders.h"

#include <array>

using namespace mlir;

namespace sheaf::passes {
namespace {

using Source = GradientBlock::Source;
using OfWeight = GradientBlock::OfWeight;

constexpr std::array<StringLiteral, 4> kSources = {"argument", "result", "gradient", "output"};
constexpr std::array<StringLiteral, 3> kKinds = {"product", "whole", "scatter"};

template <size_t N> size_t numberOf(StringRef name, const std::array<StringLiteral, N> &names) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return i;
  throw InternalError("a backward block names '" + name.str() + "'");
}

Attribute write(Builder &b, const Source &source) {
  return b.getArrayAttr(
      {b.getStringAttr(kSources[source.kind]), b.getI64IntegerAttr(source.index)});
}

Source readSource(Attribute attribute) {
  auto pair = cast<ArrayAttr>(attribute);
  return {static_cast<Source::Kind>(numberOf(cast<StringAttr>(pair[0]).getValue(), kSources)),
          cast<IntegerAttr>(pair[1]).getInt()};
}

} // namespace

Attribute GradientBlock::toAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<Attribute> sources, gradients, weights;
  for (const Source &source : arguments)
    sources.push_back(write(b, source));
  for (const OfArgument &each : ofArguments)
    gradients.push_back(
        b.getArrayAttr({b.getI64IntegerAttr(each.argument), write(b, each.gradient)}));
  for (const OfWeight &each : ofWeights) {
    SmallVector<NamedAttribute> fields = {
        b.getNamedAttr("kind", b.getStringAttr(kKinds[each.kind])),
        b.getNamedAttr("weight", b.getI64IntegerAttr(each.weight)),
        b.getNamedAttr("right", write(b, each.right))};
    if (each.kind != OfWeight::Whole)
      fields.push_back(b.getNamedAttr("left", write(b, each.left)));
    if (each.kind == OfWeight::Product) {
      fields.push_back(
          b.getNamedAttr("rows", b.getDenseI64ArrayAttr({each.rowBegin, each.rowCount})));
      fields.push_back(
          b.getNamedAttr("columns", b.getDenseI64ArrayAttr({each.columnBegin, each.columnCount})));
    }
    weights.push_back(b.getDictionaryAttr(fields));
  }
  return b.getDictionaryAttr({b.getNamedAttr("arguments", b.getArrayAttr(sources)),
                              b.getNamedAttr("gradients", b.getArrayAttr(gradients)),
                              b.getNamedAttr("weights", b.getArrayAttr(weights))});
}

GradientBlock GradientBlock::fromAttribute(Attribute attribute) {
  auto all = cast<DictionaryAttr>(attribute);
  GradientBlock block;
  for (Attribute source : all.getAs<ArrayAttr>("arguments"))
    block.arguments.push_back(readSource(source));
  for (Attribute each : all.getAs<ArrayAttr>("gradients")) {
    auto pair = cast<ArrayAttr>(each);
    block.ofArguments.push_back({cast<IntegerAttr>(pair[0]).getInt(), readSource(pair[1])});
  }
  for (Attribute each : all.getAs<ArrayAttr>("weights")) {
    auto fields = cast<DictionaryAttr>(each);
    OfWeight weight;
    weight.kind =
        static_cast<OfWeight::Kind>(numberOf(fields.getAs<StringAttr>("kind").getValue(), kKinds));
    weight.weight = fields.getAs<IntegerAttr>("weight").getInt();
    weight.right = readSource(fields.get("right"));
    if (Attribute left = fields.get("left"))
      weight.left = readSource(left);
    if (auto rows = fields.getAs<DenseI64ArrayAttr>("rows")) {
      weight.rowBegin = rows[0], weight.rowCount = rows[1];
      auto columns = fields.getAs<DenseI64ArrayAttr>("columns");
      weight.columnBegin = columns[0], weight.columnCount = columns[1];
    }
    block.ofWeights.push_back(weight);
  }
  return block;
}

} // namespace sheaf::passes
