//===- MemoryBound.cpp - What an instance takes at most -------------------===//

#include "compiler/analysis/MemoryBound.h"

#include "compiler/analysis/SizeWalk.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

bool isName(StringRef text) {
  return !text.empty() && (llvm::isAlpha(text.front()) || text.front() == '_') &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

int64_t elementBytes(RankedTensorType type) {
  Type element = type.getElementType();
  if (element.isInteger(64))
    return 8;
  return element.isF16() || element.isBF16() ? 2 : 4;
}

/// The arguments of an entry, with a symbol for each size that is not in their types.
class Arguments {
public:
  Arguments(ModuleOp module, func::FuncOp entry, SizeSymbols &symbols)
      : module_(module), entry_(entry), symbols_(symbols) {}

  SizeValue make(unsigned argument) {
    auto array = [&](StringRef name) {
      auto attr = entry_.getArgAttrOfType<ArrayAttr>(argument, name);
      return attr ? attr.getValue() : ArrayRef<Attribute>();
    };
    dims_ = array("sheaf.dims");
    lengths_ = array("sheaf.lengths");
    auto name = entry_.getArgAttrOfType<StringAttr>(argument, "sheaf.name");
    return make(entry_.getArgumentTypes()[argument],
                name ? name.str() : "arg" + std::to_string(argument));
  }

private:
  /// A size of the instance: of all elements together where it is in a list or in a data value.
  Bound size(const std::string &name, const std::string &what, std::vector<std::string> others = {},
             const std::string &group = "") {
    unsigned symbol = symbols_.add({SizeSymbol::Size, name, what, "", group, std::move(others)});
    return inContainers(Bound::symbol(symbol));
  }
  Bound inContainers(Bound all) {
    for (SizeSums *sums : containers_) {
      unsigned each = symbols_.element();
      (*sums)[each] = std::move(all);
      all = Bound::symbol(each);
    }
    return all;
  }
  /// The same number wherever in the arguments it is named.
  Bound named(const std::string &name, const std::string &what,
              const std::vector<std::string> &others) {
    auto [it, isNew] = named_.try_emplace(name, 0);
    if (isNew)
      it->second = symbols_.add({SizeSymbol::Size, name, what, "", "", others});
    else
      symbols_.addNames(it->second, others);
    return Bound::symbol(it->second);
  }

  StringRef next(ArrayRef<Attribute> &names) {
    if (names.empty())
      return "?";
    StringRef name = cast<StringAttr>(names.front()).getValue();
    names = names.drop_front();
    return name;
  }

  std::string together(const std::string &text) const {
    return containers_.empty() ? text : text + ", all together";
  }

  SizeValue make(Type type, const std::string &path) {
    SizeValue value;
    if (isa<IntegerType, ir::TokenType>(type)) {
      value.kind = SizeValue::Number;
      if (type.isInteger(1))
        value.number = {0, Bound(1)};
      else if (isa<ir::TokenType>(type))
        value.number = {0,
                        Bound::symbol(symbols_.unknown(entry_.getLoc(), "the number of a token"))};
      else
        value.number = {INT64_MIN,
                        named(path,
                              containers_.empty() ? "the number '" + path + "'"
                                                  : "the largest number of '" + path + "'",
                              {})};
    } else if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      value.kind = SizeValue::Tensor;
      for (auto [axis, extent] : llvm::enumerate(tensor.getShape())) {
        std::string dim = next(dims_).str(), own = path + "." + std::to_string(axis);
        if (!ShapedType::isDynamic(extent)) {
          value.dims.push_back(SizeNumber::exactly(extent));
          continue;
        }
        std::vector<std::string> others;
        if (tensor.getRank() == 1)
          others.push_back(path);
        std::string what = "axis " + std::to_string(axis) + " of '" + path + "'";
        if (isName(dim)) {
          others.push_back(own);
          value.dims.push_back(SizeNumber::upTo(named(dim, what, others)));
        } else {
          value.dims.push_back(SizeNumber::upTo(size(own, together(what), others)));
        }
      }
    } else if (auto list = dyn_cast<ir::ListType>(type)) {
      value.kind = SizeValue::List;
      std::string length = next(lengths_).str(), what = "the length of '" + path + "'";
      int64_t number = 0;
      if (!StringRef(length).getAsInteger(10, number))
        value.number = SizeNumber::exactly(number);
      else if (isName(length))
        value.number = SizeNumber::upTo(named(length, what, {path}));
      else
        value.number = SizeNumber::upTo(size(path, together(what)));
      SizeSums sums;
      containers_.push_back(&sums);
      value.parts.push_back(make(list.getElement(), path + "[]"));
      containers_.pop_back();
      value.sums = std::move(sums);
    } else if (auto tuple = dyn_cast<TupleType>(type)) {
      value.kind = SizeValue::Tuple;
      for (auto [i, field] : llvm::enumerate(tuple.getTypes()))
        value.parts.push_back(make(field, path + "." + std::to_string(i)));
    } else if (auto data = dyn_cast<ir::DataType>(type)) {
      ArrayRef<Attribute> dims = std::exchange(dims_, {}), lengths = lengths_;
      value = isRecursive(data, module_) ? makeTree(data, path) : makeData(data, path);
      dims_ = dims;
      lengths_ = lengths;
    }
    return value;
  }

  ir::DataOp declaration(ir::DataType type) {
    return module_.lookupSymbol<ir::DataOp>(type.getName().getAttr());
  }
  void beginFields(ir::DataOp data) {
    auto lengths = data->getAttrOfType<ArrayAttr>("sheaf.lengths");
    lengths_ = lengths ? lengths.getValue() : ArrayRef<Attribute>();
    dims_ = {};
  }

  SizeValue makeData(ir::DataType type, const std::string &path) {
    ir::DataOp data = declaration(type);
    SizeValue value;
    value.kind = SizeValue::Data;
    beginFields(data);
    for (auto ctor : data.getCtors().getAsRange<ir::CtorAttr>()) {
      SizeValue fields;
      fields.kind = SizeValue::Tuple;
      for (auto [field, name] : llvm::zip(ctor.getFieldTypes().getAsValueRange<TypeAttr>(),
                                          ctor.getFieldNames().getAsRange<StringAttr>()))
        fields.parts.push_back(make(field, path + "." + name.str()));
      value.parts.push_back(std::move(fields));
    }
    return value;
  }

  /// Nodes by constructor; of what they hold all nodes together.
  SizeValue makeTree(ir::DataType type, const std::string &path) {
    SizeValue value;
    value.kind = SizeValue::Tree;
    // Inside of its own fields it is one of its nodes.
    if (current_)
      return value;
    auto tree = std::make_shared<SizeTree>();
    llvm::SetVector<Type> types;
    types.insert(type);
    current_ = tree.get();
    std::vector<NodeKind> kinds;
    for (size_t i = 0; i < types.size(); ++i) {
      ir::DataOp data = declaration(cast<ir::DataType>(types[i]));
      for (auto [number, ctor] : llvm::enumerate(data.getCtors().getAsRange<ir::CtorAttr>())) {
        NodeKind kind{data.getSymName().str(), static_cast<unsigned>(number)};
        kinds.push_back(kind);
        std::string name = path + "." + ctor.getName().str();
        tree->nodes[kind] = size(
            name, together("how many '" + ctor.getName().str() + "' there are in '" + path + "'"),
            {}, path + ".nodes");
        for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
          addRecursive(field, types);
      }
    }
    Bound nodes;
    for (const auto &[kind, count] : tree->nodes)
      nodes += count;
    nodes_ = nodes;
    for (const auto &kind : kinds) {
      auto data = module_.lookupSymbol<ir::DataOp>(kind.first);
      auto ctor = cast<ir::CtorAttr>(data.getCtors()[kind.second]);
      beginFields(data);
      auto fields = std::make_shared<std::vector<SizeValue>>();
      containers_.push_back(&tree->sums);
      for (auto [field, name] : llvm::zip(ctor.getFieldTypes().getAsValueRange<TypeAttr>(),
                                          ctor.getFieldNames().getAsRange<StringAttr>()))
        fields->push_back(makeField(field, path + "." + ctor.getName().str() + "." + name.str()));
      containers_.pop_back();
      tree->fields[kind] = std::move(fields);
    }
    current_ = nullptr;
    value.tree = std::move(tree);
    return value;
  }

  /// A list of nodes: there are no more elements of such than nodes.
  SizeValue makeField(Type type, const std::string &path) {
    auto list = dyn_cast<ir::ListType>(type);
    auto data = list ? dyn_cast<ir::DataType>(list.getElement()) : ir::DataType();
    if (!data || !isRecursive(data, module_))
      return make(type, path);
    next(lengths_);
    SizeValue value;
    value.kind = SizeValue::List;
    unsigned each = symbols_.element();
    current_->sums[each] = nodes_;
    value.number = SizeNumber::upTo(Bound::symbol(each));
    value.parts.push_back(make(data, path));
    return value;
  }

  void addRecursive(Type type, llvm::SetVector<Type> &types) {
    if (auto list = dyn_cast<ir::ListType>(type)) {
      addRecursive(list.getElement(), types);
    } else if (auto tuple = dyn_cast<TupleType>(type)) {
      for (Type field : tuple.getTypes())
        addRecursive(field, types);
    } else if (auto data = dyn_cast<ir::DataType>(type)) {
      if (isRecursive(data, module_)) {
        types.insert(type);
        return;
      }
      for (auto ctor : declaration(data).getCtors().getAsRange<ir::CtorAttr>())
        for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
          addRecursive(field, types);
    }
  }

  ModuleOp module_;
  func::FuncOp entry_;
  SizeSymbols &symbols_;
  ArrayRef<Attribute> dims_, lengths_;
  std::vector<SizeSums *> containers_;
  std::map<std::string, unsigned> named_;
  SizeTree *current_ = nullptr;
  Bound nodes_; ///< of `current_`
};

/// Bytes of an argument's tensors, and of the lists and data that hold them: these are copied.
class InputBytes {
public:
  InputBytes(ModuleOp module, const SizeSymbols &symbols) : module_(module), symbols_(symbols) {}

  struct Bytes {
    Bound rows, heap;
  };
  Bytes of(const SizeValue &value, Type type) {
    if (!holdsTensors(type, module_))
      return {};
    Bytes bytes;
    auto add = [&](const Bytes &each, const Bound &count, const SizeSums &sums) {
      bytes.rows += sumOf(each.rows, count, sums, symbols_);
      bytes.heap += sumOf(each.heap, count, sums, symbols_);
    };
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      bytes.rows = Bound(kGranuleBytes);
      if (!value.dims.empty()) {
        bytes.rows = value.dims.back().most * Bound(static_cast<double>(elementBytes(tensor)));
        bytes.rows = rowBytes(bytes.rows);
        for (const SizeNumber &dim : llvm::drop_end(value.dims))
          bytes.rows = bytes.rows * dim.most;
      }
    } else if (auto list = dyn_cast<ir::ListType>(type)) {
      if (std::optional<SizeValue> element = elementOf(value))
        add(of(*element, list.getElement()), value.number.most, value.sums);
      bytes.heap += listBytes(list, value.number.most);
    } else if (auto tuple = dyn_cast<TupleType>(type)) {
      for (auto [part, field] : llvm::zip(value.parts, tuple.getTypes()))
        add(of(part, field), Bound(1), {});
    } else if (auto data = dyn_cast<ir::DataType>(type)) {
      auto declaration = module_.lookupSymbol<ir::DataOp>(data.getName().getAttr());
      auto fieldsOf = [&](ir::CtorAttr ctor, const std::vector<SizeValue> &fields) {
        Bytes all{{}, Bound(kSlotBytes)};
        for (auto [part, field] :
             llvm::zip(fields, ctor.getFieldTypes().getAsValueRange<TypeAttr>())) {
          all.heap += slotBytes(field);
          Bytes own = of(part, field);
          all.rows += own.rows;
          all.heap += own.heap;
        }
        return all;
      };
      if (value.kind == SizeValue::Data)
        for (auto [fields, ctor] :
             llvm::zip(value.parts, declaration.getCtors().getAsRange<ir::CtorAttr>())) {
          Bytes own = fieldsOf(ctor, fields.parts);
          bytes.rows = Bound::max(bytes.rows, own.rows);
          bytes.heap = Bound::max(bytes.heap, own.heap);
        }
      else if (value.tree)
        for (const auto &[kind, count] : value.tree->nodes) {
          auto owner = module_.lookupSymbol<ir::DataOp>(kind.first);
          add(fieldsOf(cast<ir::CtorAttr>(owner.getCtors()[kind.second]),
                       *value.tree->fields.at(kind)),
              count, value.tree->sums);
        }
    }
    return bytes;
  }

private:
  ModuleOp module_;
  const SizeSymbols &symbols_;
};

} // namespace

MemoryBound boundMemory(ModuleOp module, StringRef entry, const RecordingKernels &kernels,
                        const std::map<std::string, double> &most) {
  MemoryBound bound;
  bound.symbols.ask(most);
  auto func = module.lookupSymbol<func::FuncOp>(entry);
  SizeWalk walk(module, kernels, bound.symbols);
  Arguments arguments(module, func, bound.symbols);
  InputBytes inputs(module, bound.symbols);
  SizeWalk::Values args;
  Bound copied;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (i == 0 && ir::takesKey(func)) {
      args.push_back(unknownValue(type, module, bound.symbols, func.getLoc(), "a key"));
      continue;
    }
    args.push_back(arguments.make(static_cast<unsigned>(i)));
    InputBytes::Bytes bytes = inputs.of(args.back(), type);
    bound.inputBytes += bytes.rows;
    copied += bytes.heap;
  }
  SizeWalk::Values results = walk.runEntry(func, args);
  bound.use = walk.use();
  for (auto [result, type] : llvm::zip_equal(results, func.getResultTypes()))
    bound.results += walk.tensorsIn(result, type);
  // The call itself, and slots of arguments and results.
  bound.use.heapBytes += copied + Bound(64 * kSlotBytes);
  for (Type type : func.getArgumentTypes())
    bound.use.heapBytes += slotBytes(type);
  for (Type type : func.getResultTypes())
    bound.use.heapBytes += slotBytes(type);
  return bound;
}

} // namespace sheaf::passes
