//===- ModelTypes.cpp - Types and parameters as the runtime sees them -----===//

#include "compiler/model/ModelTypes.h"

#include "compiler/ops/Build.h"
#include "runtime/model/error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <tuple>

using namespace mlir;

namespace sheaf::host {
namespace {

ArrayRef<Attribute> elements(ArrayAttr array) {
  return array ? array.getValue() : ArrayRef<Attribute>();
}

class TypeDescriber {
public:
  /// `table`: what has been described already.
  explicit TypeDescriber(ModuleOp program, rt::TypeTable table = {})
      : symbols_(program), table_(std::move(table)), finished_(table_.data.size()) {
    for (const rt::DataDesc &data : table_.data) {
      auto name = FlatSymbolRefAttr::get(program.getContext(), data.name);
      dataNumbers_[name] = static_cast<uint32_t>(declarations_.size());
      declarations_.push_back(symbols_.lookup<ir::DataOp>(name.getAttr()));
    }
  }

  /// `names` gives the names of extents, in order of appearance, and `lengths` those of lists; they
  /// shrink from the front.
  uint32_t describe(Type type, ArrayRef<Attribute> &names, ArrayRef<Attribute> &lengths) {
    rt::TypeDesc desc;
    TypeSwitch<Type>(type)
        .Case<IntegerType>([&](IntegerType t) {
          desc.kind = t.getWidth() == 1 ? rt::TypeKind::Bool : rt::TypeKind::Int;
        })
        .Case<FloatType>([&](FloatType) { desc.kind = rt::TypeKind::Float; })
        .Case<ir::TokenType>([&](ir::TokenType t) {
          desc.kind = rt::TypeKind::Token;
          desc.vocab = t.getVocab().str();
        })
        .Case<RankedTensorType>([&](RankedTensorType t) { describeTensor(t, names, desc); })
        .Case<ir::ListType>([&](ir::ListType t) {
          desc.kind = rt::TypeKind::List;
          describeLength(lengths, desc);
          desc.children = {describe(t.getElement(), names, lengths)};
        })
        .Case<TupleType>([&](TupleType t) {
          desc.kind = rt::TypeKind::Tuple;
          for (Type field : t.getTypes())
            desc.children.push_back(describe(field, names, lengths));
        })
        .Case<ir::DataType>([&](ir::DataType t) {
          desc.kind = rt::TypeKind::Data;
          desc.data = dataIndex(t.getName());
        });
    return add(std::move(desc));
  }

  /// Describes the fields of every data type that was met; they may name more data types.
  void finish() {
    for (size_t i = finished_; i < declarations_.size(); ++i) {
      ir::DataOp data = declarations_[i];
      // A field's description may add to the table: no reference into it is held meanwhile.
      std::vector<rt::CtorDesc> ctors;
      ArrayRef<Attribute> lengths = elements(data->getAttrOfType<ArrayAttr>("sheaf.lengths"));
      for (auto ctor : data.getCtors().getAsRange<ir::CtorAttr>()) {
        rt::CtorDesc desc;
        desc.name = ctor.getName().str();
        for (auto name : ctor.getFieldNames().getAsRange<StringAttr>())
          desc.fieldNames.push_back(name.str());
        for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>()) {
          ArrayRef<Attribute> unnamed;
          desc.fieldTypes.push_back(describe(field, unnamed, lengths));
        }
        ctors.push_back(std::move(desc));
      }
      table_.data[i].ctors = std::move(ctors);
    }
  }

  rt::TypeTable take() { return std::move(table_); }

  /// The number of a type: equal types have one.
  uint32_t add(rt::TypeDesc desc) {
    auto parts = [](const rt::TypeDesc &d) {
      return std::tie(d.kind, d.dtype, d.shape, d.dimNames, d.isToken, d.vocab, d.children, d.data,
                      d.length);
    };
    std::vector<rt::TypeDesc> &types = table_.types;
    auto known = llvm::find_if(types, [&](auto &other) { return parts(other) == parts(desc); });
    if (known == types.end())
      known = types.insert(types.end(), std::move(desc));
    return static_cast<uint32_t>(known - types.begin());
  }

private:
  void describeTensor(RankedTensorType type, ArrayRef<Attribute> &names, rt::TypeDesc &desc) {
    desc.kind = rt::TypeKind::Tensor;
    desc.dtype = runtimeDType(type);
    for (int64_t extent : type.getShape()) {
      bool isDynamic = ShapedType::isDynamic(extent);
      desc.shape.push_back(isDynamic ? -1 : extent);
      StringAttr name;
      if (!names.empty()) {
        name = dyn_cast<StringAttr>(names.front());
        names = names.drop_front();
      }
      desc.dimNames.push_back(name        ? name.str()
                              : isDynamic ? std::string("?")
                                          : std::to_string(extent));
    }
    if (auto vocab = ir::tokenVocab(type)) {
      desc.isToken = true;
      desc.vocab = vocab->str();
    }
  }

  static void describeLength(ArrayRef<Attribute> &lengths, rt::TypeDesc &desc) {
    if (lengths.empty())
      return;
    StringRef length = cast<StringAttr>(lengths.front()).getValue();
    lengths = lengths.drop_front();
    if (length == "?")
      return;
    int64_t number = -1;
    if (length.getAsInteger(10, number))
      number = -1;
    desc.length = number;
    desc.dimNames = {length.str()};
  }

  uint32_t dataIndex(FlatSymbolRefAttr name) {
    auto [it, isNew] = dataNumbers_.try_emplace(name, declarations_.size());
    if (isNew) {
      declarations_.push_back(symbols_.lookup<ir::DataOp>(name.getAttr()));
      table_.data.push_back({name.getValue().str(), {}});
    }
    return it->second;
  }

  SymbolTable symbols_;
  rt::TypeTable table_;
  size_t finished_; ///< data whose fields are described
  std::vector<ir::DataOp> declarations_;
  llvm::DenseMap<Attribute, uint32_t> dataNumbers_;
};

} // namespace

rt::DType runtimeDType(RankedTensorType type) {
  if (std::optional<rt::DType> dtype = ops::dtypeOf(type.getElementType()))
    return *dtype;
  throw InternalError("a tensor of an element type that the language does not have");
}

ModelTypes describeEntry(ModuleOp program, StringRef entry) {
  auto func = program.lookupSymbol<func::FuncOp>(entry);
  if (!func)
    throw InternalError("no function " + entry.str());
  TypeDescriber describer(program);
  ModelTypes model;
  model.entry.name = entry.str();
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (i == 0 && ir::takesKey(func))
      continue;
    auto name = func.getArgAttrOfType<StringAttr>(i, "sheaf.name");
    model.entry.argNames.push_back(name ? name.str() : "arg" + std::to_string(i));
    ArrayRef<Attribute> names = elements(func.getArgAttrOfType<ArrayAttr>(i, "sheaf.dims"));
    ArrayRef<Attribute> lengths = elements(func.getArgAttrOfType<ArrayAttr>(i, "sheaf.lengths"));
    model.entry.argTypes.push_back(describer.describe(type, names, lengths));
  }
  std::vector<uint32_t> results;
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    ArrayRef<Attribute> names = elements(func.getResultAttrOfType<ArrayAttr>(i, "sheaf.dims"));
    ArrayRef<Attribute> lengths = elements(func.getResultAttrOfType<ArrayAttr>(i, "sheaf.lengths"));
    results.push_back(describer.describe(type, names, lengths));
  }
  if (results.size() == 1) {
    model.entry.resultType = results.front();
  } else {
    rt::TypeDesc tuple;
    tuple.kind = rt::TypeKind::Tuple;
    tuple.children = results;
    model.entry.resultType = describer.add(std::move(tuple));
  }
  if (std::optional<Type> emitted = ir::emittedType(func)) {
    ArrayRef<Attribute> unnamed, lengths;
    rt::TypeDesc list;
    list.kind = rt::TypeKind::List;
    list.children = {describer.describe(*emitted, unnamed, lengths)};
    model.entry.emits = list.children.front();
    rt::TypeDesc both;
    both.kind = rt::TypeKind::Tuple;
    both.children = {model.entry.resultType, describer.add(std::move(list))};
    model.entry.resultType = describer.add(std::move(both));
  }
  describer.finish();
  model.types = describer.take();
  return model;
}

std::vector<std::vector<rt::RootDesc>>
describeRoots(ModuleOp program, ArrayRef<std::vector<Root>> places, rt::TypeTable &types) {
  TypeDescriber describer(program, std::move(types));
  std::vector<std::vector<rt::RootDesc>> described;
  for (const std::vector<Root> &place : places) {
    std::vector<rt::RootDesc> &roots = described.emplace_back();
    for (const Root &root : place) {
      ArrayRef<Attribute> unnamed, lengths;
      roots.push_back({root.kind, describer.describe(root.type, unnamed, lengths)});
    }
  }
  describer.finish();
  types = describer.take();
  return described;
}

ParamLayout layoutParams(ModuleOp program) {
  ParamLayout layout;
  int64_t next = 0;
  for (auto param : program.getOps<ir::ParamOp>()) {
    auto type = cast<RankedTensorType>(param.getType());
    rt::ParamDesc desc;
    desc.name = param.getSymName().str();
    desc.dtype = runtimeDType(type);
    desc.shape.assign(type.getShape().begin(), type.getShape().end());
    desc.init = param.getInit().str();
    for (auto arg : param.getInitArgs().getAsValueRange<FloatAttr>())
      desc.initArgs.push_back(arg.convertToDouble());
    desc.synthetic = param->hasAttr("sheaf.synthetic");
    desc.id = static_cast<uint32_t>(next);
    int64_t granules = rt::tensorGranules(desc.shape, desc.dtype);
    if (granules > UINT32_MAX - next)
      throw UserError("the parameters take more than " +
                      std::to_string((uint64_t(UINT32_MAX) * rt::kGranuleBytes) >> 30) + " GB; '" +
                      desc.name + "' does not fit");
    next += granules;
    layout.params.push_back(std::move(desc));
  }
  layout.granules = static_cast<uint32_t>(next);
  return layout;
}

} // namespace sheaf::host
