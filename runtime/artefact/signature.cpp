#include "runtime/artefact/signature.h"

#include "runtime/io/types.h"
#include "runtime/model/members.h"

#include <algorithm>
#include <set>

namespace sheaf::artefact {

using rt::TypeKind;

std::string signature(const Description &description) {
  const rt::TypeTable &types = description.model.types;
  const std::vector<uint32_t> &arguments = description.model.entry.argTypes;
  auto tokensOf = [&](const std::string &vocabulary) {
    auto found = std::find_if(description.vocabularies.begin(), description.vocabularies.end(),
                              [&](const VocabularyDesc &desc) { return desc.name == vocabulary; });
    return found == description.vocabularies.end() ? int64_t(0) : found->size;
  };
  std::string text;
  std::set<uint32_t> data;
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + io::typeName(types, arguments[i]);
  rt::forEachReachable(types, arguments, [&](uint32_t number) {
    const rt::TypeDesc &type = types.types[number];
    if (type.kind == TypeKind::Data)
      data.insert(type.data);
    if (type.kind == TypeKind::Token || (type.kind == TypeKind::Tensor && type.isToken))
      text += "; " + type.vocab + ":" + std::to_string(tokensOf(type.vocab));
    if (type.kind == TypeKind::Tensor)
      for (int64_t extent : type.shape)
        text += " " + std::to_string(extent);
  });
  for (uint32_t number : data) {
    text += "\n" + types.data[number].name + " =";
    for (const rt::CtorDesc &ctor : types.data[number].ctors) {
      text += " | " + ctor.name + "(";
      for (uint32_t field : ctor.fieldTypes)
        text += io::typeName(types, field) + ", ";
      text += ")";
    }
  }
  return text;
}

} // namespace sheaf::artefact
