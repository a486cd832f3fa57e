#include "runtime/io/jsonl.h"

#include "runtime/io/types.h"
#include "runtime/model/members.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace sheaf::io {

using rt::Slot;
using rt::TypeDesc;
using rt::TypeKind;

std::optional<OptionalCtors> optionalCtors(const rt::TypeTable &types, uint32_t type) {
  if (types.types[type].kind != TypeKind::Data)
    return std::nullopt;
  const std::vector<rt::CtorDesc> &ctors = types.data[types.types[type].data].ctors;
  for (uint32_t absent = 0; absent < 2 && ctors.size() == 2; ++absent)
    if (ctors[absent].fieldTypes.empty() && ctors[1 - absent].fieldTypes.size() == 1)
      return OptionalCtors{absent, 1 - absent, ctors[1 - absent].fieldTypes[0]};
  return std::nullopt;
}

/// By type. One whose field is that type again, through others of this kind or not, has no bare
/// value.
static std::vector<std::optional<OptionalCtors>> optionalTypes(const rt::TypeTable &types) {
  std::vector<std::optional<OptionalCtors>> found;
  for (uint32_t t = 0; t < types.types.size(); ++t)
    found.push_back(optionalCtors(types, t));
  auto isEndless = [&](uint32_t t) {
    size_t steps = 0;
    for (; found[t] && steps <= found.size(); t = found[t]->field)
      ++steps;
    return steps > found.size();
  };
  std::vector<bool> endless;
  for (uint32_t t = 0; t < found.size(); ++t)
    endless.push_back(isEndless(t));
  for (uint32_t t = 0; t < found.size(); ++t)
    if (endless[t])
      found[t].reset();
  return found;
}

JsonInstanceReader::JsonInstanceReader(const ReadContext &context)
    : types_(context.types), entry_(context.entry), tokens_(context.tokens), heap_(context.heap),
      strict_(context.strict), extents_(context.dims) {
  const rt::TypeTable &types = types_;
  const rt::EntryDesc &entry = entry_;
  // Only vocabularies that the entry's arguments can reach are needed.
  vocabs_.resize(types.types.size());
  rt::forEachReachable(types, entry.argTypes, [&](uint32_t t) {
    const TypeDesc &type = types.types[t];
    if (type.kind == TypeKind::Token || (type.kind == TypeKind::Tensor && type.isToken))
      vocabs_[t] = tokens_.open(type.vocab);
  });
  for (uint32_t t = 0; t < types.types.size(); ++t)
    slots_.push_back(types.slots(t));
  auto layoutOf = [&](const std::vector<uint32_t> &fields) {
    CtorLayout layout{{0}};
    for (uint32_t field : fields)
      layout.offsets.push_back(layout.offsets.back() + slots_[field]);
    return layout;
  };
  for (const rt::DataDesc &data : types.data) {
    std::vector<CtorLayout> layouts;
    for (const rt::CtorDesc &ctor : data.ctors)
      layouts.push_back(layoutOf(ctor.fieldTypes));
    ctorLayouts_.push_back(std::move(layouts));
  }
  argLayout_ = layoutOf(entry.argTypes);
  trees_.resize(types.types.size());
  optional_ = optionalTypes(types);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

const std::vector<std::string> &JsonInstanceReader::memberNames(const Frame &frame) const {
  return frame.kind == Frame::Params
             ? entry_.argNames
             : types_.data[types_.types[frame.type].data].ctors[frame.ctor].fieldNames;
}

const std::vector<uint32_t> &JsonInstanceReader::memberTypes(const Frame &frame) const {
  return frame.kind == Frame::Params
             ? entry_.argTypes
             : types_.data[types_.types[frame.type].data].ctors[frame.ctor].fieldTypes;
}

const JsonInstanceReader::CtorLayout &JsonInstanceReader::layout(const Frame &frame) const {
  return frame.kind == Frame::Params ? argLayout_
                                     : ctorLayouts_[types_.types[frame.type].data][frame.ctor];
}

std::string JsonInstanceReader::path() const {
  constexpr size_t kEnd = 6;
  std::string text = "$";
  for (size_t i = 0; i < frames_.size(); ++i) {
    if (i == kEnd && frames_.size() > 2 * kEnd) {
      i = frames_.size() - kEnd;
      text += "...";
    }
    const Frame &frame = frames_[i];
    if (frame.kind == Frame::Bare)
      continue;
    if (frame.kind == Frame::Positional || frame.kind == Frame::Named)
      text += "." + types_.data[types_.types[frame.type].data].ctors[frame.ctor].name;
    if (frame.count == 0)
      continue;
    if (frame.kind == Frame::Named || frame.kind == Frame::Params)
      text += "." + memberNames(frame)[frame.member];
    else
      text += fmt::format("[{}]", frame.count - 1);
  }
  for (int64_t count : counts_)
    if (count > 0)
      text += fmt::format("[{}]", count - 1);
  return text;
}

/// A positional field's name, which the path does not show.
std::string JsonInstanceReader::fieldName() const {
  if (frames_.empty() || frames_.back().kind != Frame::Positional || frames_.back().count == 0)
    return {};
  const Frame &frame = frames_.back();
  const std::vector<std::string> &names = memberNames(frame);
  if (frame.member >= names.size() || names[frame.member].empty())
    return {};
  return fmt::format(" for '{}'", names[frame.member]);
}

void JsonInstanceReader::fail(const std::string &message) const {
  throw TextError{json_.offset(), message, path()};
}

void JsonInstanceReader::expected(const std::string &what, JsonEvent found) const {
  fail(fmt::format("expected {}{}, found {}", what, fieldName(),
                   describeEvent(found, json_.text())));
}

static std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "none" : text;
}

//===----------------------------------------------------------------------===//
// One instance
//===----------------------------------------------------------------------===//

const std::vector<Slot> &JsonInstanceReader::read(std::string_view text) {
  extents_.clear();
  readOnce(text);
  if (extents_.mustReread()) {
    extents_.beginReread();
    readOnce(text);
  }
  if (std::string message = extents_.finish(); !message.empty())
    throw TextError{0, std::move(message)};
  for (const std::string &name : unknown_)
    ++ignored_[name];
  return args_;
}

void JsonInstanceReader::readOnce(std::string_view text) {
  json_ = JsonPull(text);
  frames_.clear();
  values_.clear();
  order_.clear();
  counts_.clear();
  unknown_.clear();
  beginDocument();
  while (!frames_.empty())
    continueFrame();
  json_.next(); // End, or it throws
  args_.assign(values_.begin(), values_.end());
}

void JsonInstanceReader::beginDocument() {
  bool single = entry_.argTypes.size() == 1;
  if (single && json_.peek() != JsonEvent::BeginObject)
    return beginValue(entry_.argTypes[0]);
  JsonEvent event = json_.next();
  if (event != JsonEvent::BeginObject)
    expected(fmt::format("an object with the members {}", listed(entry_.argNames)), event);
  if (single && types_.types[entry_.argTypes[0]].kind == TypeKind::Data &&
      json_.peek() == JsonEvent::Key) {
    // A constructor, or the parameter? Constructors go first: they need no object around them.
    if (isConstructor(entry_.argTypes[0], json_.text()))
      return beginConstructor(entry_.argTypes[0]);
  }
  frames_.push_back({Frame::Params, 0, 0, 0, 0, values_.size(), order_.size()});
}

void JsonInstanceReader::beginValue(uint32_t t) {
  const TypeDesc &type = types_.types[t];
  if (type.kind == TypeKind::Data)
    return beginData(t);
  JsonEvent event = json_.next();
  switch (type.kind) {
  case TypeKind::Int:
    if (event != JsonEvent::Number)
      expected("int", event);
    values_.push_back(integer(event));
    return;
  case TypeKind::Float:
    values_.push_back(std::bit_cast<Slot>(real(event)));
    return;
  case TypeKind::Bool:
    if (event != JsonEvent::True && event != JsonEvent::False)
      expected("true or false", event);
    values_.push_back(event == JsonEvent::True);
    return;
  case TypeKind::Token:
    values_.push_back(tokenNumber(t, event));
    return;
  case TypeKind::Tensor:
    return readTensor(t, event);
  case TypeKind::List:
    if (event != JsonEvent::BeginArray)
      expected(fmt::format("{} as an array", typeName(types_, t)), event);
    frames_.push_back({Frame::List, t, 0, 0, 0, values_.size(), order_.size()});
    return;
  case TypeKind::Tuple:
    if (event != JsonEvent::BeginArray)
      expected(fmt::format("{} as an array of {}", typeName(types_, t), type.children.size()),
               event);
    frames_.push_back({Frame::Tuple, t, 0, 0, 0, values_.size(), order_.size()});
    return;
  case TypeKind::Data:
    break;
  }
}

//===----------------------------------------------------------------------===//
// Data, lists, tuples
//===----------------------------------------------------------------------===//

bool JsonInstanceReader::isConstructor(uint32_t t, std::string_view name) const {
  const std::vector<rt::CtorDesc> &ctors = types_.data[types_.types[t].data].ctors;
  return std::any_of(ctors.begin(), ctors.end(),
                     [&](const rt::CtorDesc &ctor) { return ctor.name == name; });
}

void JsonInstanceReader::pushBare(uint32_t t, uint32_t count) {
  frames_.push_back(
      {Frame::Bare, t, optional_[t]->present, 0, count, values_.size(), order_.size()});
}

/// After the '{' of a data value, or of the bare value of one that may be absent.
void JsonInstanceReader::beginObject(uint32_t t) {
  for (;;) {
    const rt::DataDesc &data = types_.data[types_.types[t].data];
    if (json_.peek() != JsonEvent::Key) {
      json_.next();
      fail(fmt::format("expected a constructor of '{}', found an empty object", data.name));
    }
    bool isBare = !isConstructor(t, json_.text()) && optional_[t] &&
                  types_.types[optional_[t]->field].kind == TypeKind::Data;
    if (!isBare)
      return beginConstructor(t);
    pushBare(t, 1);
    t = optional_[t]->field;
  }
}

void JsonInstanceReader::beginData(uint32_t t) {
  const rt::DataDesc &data = types_.data[types_.types[t].data];
  JsonEvent event = json_.peek();
  if (event == JsonEvent::BeginObject) {
    json_.next();
    return beginObject(t);
  }
  if (optional_[t] && event == JsonEvent::Null) {
    json_.next();
    values_.push_back(heap_.data(optional_[t]->absent, nullptr, 0));
    return;
  }
  if (optional_[t] && !(event == JsonEvent::String && isConstructor(t, json_.text())))
    return pushBare(t, 0); // its value is read next
  json_.next();
  if (event == JsonEvent::String) {
    for (uint32_t c = 0; c < data.ctors.size(); ++c) {
      if (data.ctors[c].name != json_.text())
        continue;
      if (!data.ctors[c].fieldTypes.empty())
        fail(fmt::format("'{}' has {}: write {{\"{}\": [...]}}", data.ctors[c].name,
                         plural(static_cast<int64_t>(data.ctors[c].fieldTypes.size()), "field"),
                         data.ctors[c].name));
      values_.push_back(heap_.data(c, nullptr, 0));
      return;
    }
    std::string_view text = json_.text();
    while (!text.empty() && isSpace(text[0]))
      text.remove_prefix(1);
    if (text.starts_with('(')) {
      values_.push_back(treeFromString(t));
      return;
    }
  }
  std::vector<std::string> names;
  for (const rt::CtorDesc &ctor : data.ctors)
    names.push_back(ctor.name);
  expected(fmt::format("{} as one of {}", data.name, listed(names)), event);
}

Slot JsonInstanceReader::treeFromString(uint32_t t) {
  if (!trees_[t]) {
    try {
      trees_[t] = std::make_unique<TreeBinding>(types_, t);
    } catch (const UserError &error) {
      fail(error.what());
    }
  }
  // Offsets inside the string are offsets in the line only when nothing was escaped.
  size_t begin = json_.offset() + 1;
  try {
    return trees_[t]->read(json_.text(), tokens_, heap_);
  } catch (const TextError &error) {
    throw TextError{json_.isVerbatim() ? begin + error.offset : json_.offset(),
                    "in the tree: " + error.message, path()};
  }
}

/// After the '{' of a data value, at the name of its constructor.
void JsonInstanceReader::beginConstructor(uint32_t t) {
  json_.next();
  const rt::DataDesc &data = types_.data[types_.types[t].data];
  uint32_t c = 0;
  while (c < data.ctors.size() && data.ctors[c].name != json_.text())
    ++c;
  if (c == data.ctors.size()) {
    std::vector<std::string> names;
    for (const rt::CtorDesc &ctor : data.ctors)
      names.push_back(ctor.name);
    fail(fmt::format("{} is not a constructor of '{}' ({})", quoted(json_.text()), data.name,
                     listed(names)));
  }
  const rt::CtorDesc &ctor = data.ctors[c];
  JsonEvent event = json_.next();
  if (event != JsonEvent::BeginArray && event != JsonEvent::BeginObject)
    expected(fmt::format("the {} of '{}' as an array or an object",
                         plural(static_cast<int64_t>(ctor.fieldTypes.size()), "field"), ctor.name),
             event);
  frames_.push_back({event == JsonEvent::BeginArray ? Frame::Positional : Frame::Named, t, c, 0, 0,
                     values_.size(), order_.size()});
}

void JsonInstanceReader::continueFrame() {
  Frame &frame = frames_.back();
  if (frame.kind == Frame::Named || frame.kind == Frame::Params)
    return continueNamed(frame);
  if (frame.kind == Frame::Bare) {
    if (frame.count++ == 0)
      return beginValue(optional_[frame.type]->field);
    return finishBare(frame);
  }
  bool ends = json_.peek() == JsonEvent::EndArray;
  if (frame.kind == Frame::List) {
    uint32_t element = types_.types[frame.type].children[0];
    if (!ends) {
      ++frame.count;
      return beginValue(element);
    }
    json_.next();
    uint32_t count = frame.count;
    frame.count = 0; // the path of the whole, not of its last element
    checkLength(frame.type, count);
    Slot list = heap_.list(values_.data() + frame.firstValue, count, slots_[element]);
    values_.resize(frame.firstValue);
    values_.push_back(list);
    frames_.pop_back();
    return;
  }
  const std::vector<uint32_t> &members =
      frame.kind == Frame::Tuple ? types_.types[frame.type].children : memberTypes(frame);
  if (ends != (frame.count == members.size())) {
    json_.next();
    std::string what =
        frame.kind == Frame::Tuple
            ? fmt::format("{} has {}", typeName(types_, frame.type),
                          plural(static_cast<int64_t>(members.size()), "element"))
            : fmt::format("'{}' has {}",
                          types_.data[types_.types[frame.type].data].ctors[frame.ctor].name,
                          plural(static_cast<int64_t>(members.size()), "field"));
    uint32_t count = frame.count;
    frame.count = 0; // the path of the whole, not of its last member
    fail(ends ? fmt::format("{}, found {}", what, count) : fmt::format("{}, found more", what));
  }
  if (!ends) {
    frame.member = frame.count++;
    return beginValue(members[frame.member]);
  }
  json_.next();
  if (frame.kind == Frame::Tuple) { // its slots already lie in order
    frames_.pop_back();
    return;
  }
  finishNamed(frame);
}

void JsonInstanceReader::continueNamed(Frame &frame) {
  const std::vector<std::string> &names = memberNames(frame);
  JsonEvent event = json_.next();
  if (event == JsonEvent::EndObject) {
    frame.count = 0;
    for (uint32_t m = 0; m < names.size(); ++m)
      if (std::find(order_.begin() + static_cast<ptrdiff_t>(frame.firstOrder), order_.end(), m) ==
          order_.end())
        failMissing(frame, names[m]);
    return finishNamed(frame);
  }
  uint32_t m = 0;
  while (m < names.size() && names[m] != json_.text())
    ++m;
  if (m == names.size()) {
    frame.count = 0;
    if (frame.kind == Frame::Params && !strict_)
      return ignoreMember();
    if (frame.kind == Frame::Params)
      fail(fmt::format("no parameter is named {}; the parameters are {}", quoted(json_.text()),
                       listed(names)));
    fail(fmt::format("no field is named {}; the fields are {}", quoted(json_.text()),
                     listed(names)));
  }
  frame.member = m;
  ++frame.count;
  if (std::find(order_.begin() + static_cast<ptrdiff_t>(frame.firstOrder), order_.end(), m) !=
      order_.end())
    fail(fmt::format("'{}' is given twice", names[m]));
  order_.push_back(m);
  beginValue(memberTypes(frame)[m]);
}

/// After the name of a member that no parameter has.
void JsonInstanceReader::ignoreMember() {
  std::string name(json_.text());
  if (std::find(unknown_.begin(), unknown_.end(), name) == unknown_.end())
    unknown_.push_back(std::move(name));
  json_.skip(json_.next());
}

void JsonInstanceReader::failMissing(const Frame &frame, const std::string &name) {
  if (frame.kind != Frame::Params)
    fail(fmt::format("the field '{}' is missing", name));
  // A misspelt name is another member.
  uint32_t type = entry_.argTypes[0];
  if (entry_.argTypes.size() > 1 || types_.types[type].kind != TypeKind::Data)
    fail(fmt::format("the parameter '{}' is missing{}", name,
                     unknown_.empty() ? "" : "; the object has " + listed(unknown_)));
  const rt::DataDesc &data = types_.data[types_.types[type].data];
  std::vector<std::string> names;
  for (const rt::CtorDesc &ctor : data.ctors)
    names.push_back(ctor.name);
  fail(fmt::format("expected the parameter '{}' or a constructor of '{}' ({}), found {}", name,
                   data.name, listed(names),
                   unknown_.empty() ? "an empty object" : listed(unknown_)));
}

/// Puts the value of the only field that was read in its constructor.
void JsonInstanceReader::finishBare(const Frame &frame) {
  int64_t total = layout(frame).offsets.back();
  Slot value = heap_.data(frame.ctor, values_.data() + frame.firstValue, total);
  values_.resize(frame.firstValue);
  values_.push_back(value);
  frames_.pop_back();
}

/// Makes the data value (or the arguments) of the members that were read.
void JsonInstanceReader::finishNamed(const Frame &frame) {
  const CtorLayout &place = layout(frame);
  Slot *first = values_.data() + frame.firstValue;
  int64_t total = place.offsets.back();
  if (frame.kind == Frame::Params) {
    std::vector<Slot> sorted(static_cast<size_t>(total));
    for (size_t i = frame.firstOrder; i < order_.size(); ++i) {
      int64_t begin = place.offsets[order_[i]], size = place.offsets[order_[i] + 1] - begin;
      std::copy_n(first, size, sorted.data() + begin);
      first += size;
    }
    order_.resize(frame.firstOrder);
    values_.resize(frame.firstValue);
    values_.insert(values_.end(), sorted.begin(), sorted.end());
    frames_.pop_back();
    return;
  }
  Slot *object = heap_.allocate(1 + total);
  object[0] = frame.ctor;
  if (frame.kind == Frame::Positional) {
    std::copy_n(first, total, object + 1);
  } else {
    for (size_t i = frame.firstOrder; i < order_.size(); ++i) {
      int64_t begin = place.offsets[order_[i]], size = place.offsets[order_[i] + 1] - begin;
      std::copy_n(first, size, object + 1 + begin);
      first += size;
    }
    order_.resize(frame.firstOrder);
  }
  values_.resize(frame.firstValue);
  values_.push_back(std::bit_cast<Slot>(object));
  JsonEvent event = json_.next();
  if (event != JsonEvent::EndObject) {
    std::string data = types_.data[types_.types[frame.type].data].name;
    frames_.pop_back();
    fail(fmt::format("a value of '{}' is an object with one member, its constructor; found {}",
                     data, describeEvent(event, json_.text())));
  }
  frames_.pop_back();
}

} // namespace sheaf::io
