//===- type_builder.h - Type tables by hand ---------------------*- C++ -*-===//
#ifndef SHEAF_TESTS_IO_TYPE_BUILDER_H
#define SHEAF_TESTS_IO_TYPE_BUILDER_H

#include "runtime/model/layout.h"
#include "runtime/model/model.h"

#include <string>
#include <utility>
#include <vector>

namespace sheaf::io::test {

/// Builds type tables by hand.
struct Types {
  rt::TypeTable table;

  uint32_t add(rt::TypeDesc type) {
    table.types.push_back(std::move(type));
    return static_cast<uint32_t>(table.types.size() - 1);
  }
  uint32_t scalar(rt::TypeKind kind) {
    rt::TypeDesc type;
    type.kind = kind;
    return add(type);
  }
  uint32_t integer() { return scalar(rt::TypeKind::Int); }
  uint32_t real() { return scalar(rt::TypeKind::Float); }
  uint32_t boolean() { return scalar(rt::TypeKind::Bool); }
  uint32_t token(std::string vocab = "") {
    rt::TypeDesc type;
    type.kind = rt::TypeKind::Token;
    type.vocab = std::move(vocab);
    return add(type);
  }
  uint32_t tensor(rt::DType dtype, std::vector<int64_t> shape,
                  std::vector<std::string> names = {}) {
    rt::TypeDesc type;
    type.kind = rt::TypeKind::Tensor;
    type.dtype = dtype;
    type.shape = std::move(shape);
    type.dimNames = std::move(names);
    return add(type);
  }
  uint32_t tokens(std::vector<int64_t> shape, std::vector<std::string> names,
                  std::string vocab = "") {
    uint32_t t = tensor(rt::DType::I32, std::move(shape), std::move(names));
    table.types[t].isToken = true;
    table.types[t].vocab = std::move(vocab);
    return t;
  }
  uint32_t list(uint32_t element) {
    rt::TypeDesc type;
    type.kind = rt::TypeKind::List;
    type.children = {element};
    return add(type);
  }
  /// One of a length: -1 and its name, or a number.
  uint32_t list(uint32_t element, int64_t length, std::string name) {
    uint32_t t = list(element);
    table.types[t].length = length;
    table.types[t].dimNames = {std::move(name)};
    return t;
  }
  uint32_t tuple(std::vector<uint32_t> fields) {
    rt::TypeDesc type;
    type.kind = rt::TypeKind::Tuple;
    type.children = std::move(fields);
    return add(type);
  }
  /// A data type without constructors yet, so that they can refer to it.
  uint32_t data(std::string name) {
    rt::TypeDesc type;
    type.kind = rt::TypeKind::Data;
    type.data = static_cast<uint32_t>(table.data.size());
    table.data.push_back({std::move(name), {}});
    return add(type);
  }
  void ctor(uint32_t data, std::string name, std::vector<std::pair<std::string, uint32_t>> fields) {
    rt::CtorDesc ctor{std::move(name), {}, {}};
    for (auto &[fieldName, type] : fields) {
      ctor.fieldNames.push_back(fieldName);
      ctor.fieldTypes.push_back(type);
    }
    table.data[table.types[data].data].ctors.push_back(std::move(ctor));
  }

  /// data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)
  uint32_t binaryTree() {
    uint32_t tree = data("Tree"), word = token();
    ctor(tree, "Leaf", {{"word", word}});
    ctor(tree, "Node", {{"left", tree}, {"right", tree}});
    return tree;
  }
};

inline rt::EntryDesc entry(std::vector<std::pair<std::string, uint32_t>> params,
                           std::string name = "main") {
  rt::EntryDesc result;
  result.name = std::move(name);
  for (auto &[paramName, type] : params) {
    result.argNames.push_back(paramName);
    result.argTypes.push_back(type);
  }
  return result;
}

} // namespace sheaf::io::test

#endif // SHEAF_TESTS_IO_TYPE_BUILDER_H
