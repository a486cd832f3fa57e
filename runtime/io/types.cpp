#include "runtime/io/types.h"

#include "runtime/io/vocab.h"

#include <fmt/format.h>

namespace sheaf::io {

using rt::TypeKind;

bool isFreeDim(const std::string &name) { return name.empty() || name == "?" || name == "_"; }

static std::string tensorName(const rt::TypeDesc &type) {
  std::string text = type.isToken ? tokenTypeName(type.vocab) : std::string(dtypeName(type.dtype));
  // `bool` and `token` alone are host types.
  if (type.shape.empty() && !type.isToken && type.dtype != rt::DType::Bool)
    return text;
  text += "[";
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (i)
      text += ", ";
    if (type.shape[i] >= 0)
      text += std::to_string(type.shape[i]);
    else
      text += i < type.dimNames.size() && !isFreeDim(type.dimNames[i]) ? type.dimNames[i] : "?";
  }
  return text + "]";
}

// Types nest as deep as the program's text does; a message needs only the outer part.
static std::string nameAtDepth(const rt::TypeTable &types, uint32_t index, int depth) {
  if (depth > 8)
    return "...";
  const rt::TypeDesc &type = types.types[index];
  switch (type.kind) {
  case TypeKind::Int:
    return "int";
  case TypeKind::Float:
    return "float";
  case TypeKind::Bool:
    return "bool";
  case TypeKind::Token:
    return tokenTypeName(type.vocab);
  case TypeKind::Tensor:
    return tensorName(type);
  case TypeKind::List:
    return "list<" + nameAtDepth(types, type.children.at(0), depth + 1) + ">" +
           (type.length ? "[" + type.dimNames.at(0) + "]" : "");
  case TypeKind::Tuple: {
    std::string text = "(";
    for (size_t i = 0; i < type.children.size(); ++i)
      text += (i ? ", " : "") + nameAtDepth(types, type.children[i], depth + 1);
    return text + ")";
  }
  case TypeKind::Data:
    break;
  }
  return types.data[type.data].name;
}

std::string typeName(const rt::TypeTable &types, uint32_t type) {
  return nameAtDepth(types, type, 0);
}

std::string dataDeclaration(const rt::TypeTable &types, uint32_t data) {
  const rt::DataDesc &desc = types.data[data];
  std::string text = fmt::format("data {} = ", desc.name);
  for (size_t i = 0; i < desc.ctors.size(); ++i) {
    const rt::CtorDesc &ctor = desc.ctors[i];
    text += (i ? " | " : "") + ctor.name;
    if (ctor.fieldTypes.empty())
      continue;
    text += "(";
    for (size_t f = 0; f < ctor.fieldTypes.size(); ++f) {
      text += f ? ", " : "";
      if (f < ctor.fieldNames.size() && !ctor.fieldNames[f].empty())
        text += ctor.fieldNames[f] + ": ";
      text += typeName(types, ctor.fieldTypes[f]);
    }
    text += ")";
  }
  return text;
}

} // namespace sheaf::io
