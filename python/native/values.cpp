#include "python/native/values.h"
#include "python/native/arrays.h"
#include "python/native/encode.h"

#include "runtime/model/members.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <deque>

namespace sheaf::python {

using rt::Slot;
using rt::TypeKind;

namespace {

/// A NumPy array that has these elements.
template <typename T> nb::object arrayOf(std::vector<T> elements) {
  auto *held = new std::vector<T>(std::move(elements));
  nb::capsule owner(held, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
  size_t size = held->size();
  return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), {size}, owner));
}

/// Values of one argument, each written before its parts, and those in their order.
struct Written {
  std::vector<uint32_t> heads;
  std::vector<int64_t> numbers;
  std::vector<double> floats;
  std::vector<int64_t>
      shapes; ///< of each tensor: code and bits of its dtype, its axes, its extents
  std::vector<uint8_t> elements;
  /// By instance, and at the end: where it begins in each of these.
  std::vector<int64_t> starts;

  void mark() {
    for (size_t at : {heads.size(), numbers.size(), floats.size(), shapes.size(), elements.size()})
      starts.push_back(static_cast<int64_t>(at));
  }
};
constexpr size_t kStreams = 5;

class Writer {
public:
  Writer(const api::LoadedModel &model, Written &out) : model_(model), out_(out) {
    for (uint32_t type = 0; type < model.types().types.size(); ++type)
      slots_.push_back(model.slots(type));
  }

  void write(uint32_t type, const Slot *slots) {
    one(type, slots);
    while (!pending_.empty()) {
      if (pending_.back().count == 0) {
        pending_.pop_back();
        continue;
      }
      auto [part, at] = pending_.back().take(slots_);
      one(part, at);
    }
  }

private:
  void one(uint32_t number, const Slot *slots) {
    const rt::TypeDesc &type = model_.types().types[number];
    switch (type.kind) {
    case TypeKind::Float:
      out_.floats.push_back(std::bit_cast<double>(*slots));
      return;
    case TypeKind::Tensor:
      return tensor(*rt::HostTensor::fromInputSlot(*slots));
    case TypeKind::List:
      out_.heads.push_back(
          static_cast<uint32_t>(std::bit_cast<const rt::ListObject *>(*slots)->size));
      break;
    case TypeKind::Data:
      out_.heads.push_back(static_cast<uint32_t>(*std::bit_cast<const Slot *>(*slots)));
      break;
    case TypeKind::Tuple:
      break;
    default:
      out_.numbers.push_back(*slots);
      return;
    }
    pending_.push_back(rt::membersOf(model_.types(), number, slots));
  }

  void tensor(const rt::HostTensor &tensor) {
    DLDataType dtype = api::dlpackType(tensor.dtype);
    out_.shapes.insert(out_.shapes.end(),
                       {dtype.code, dtype.bits, static_cast<int64_t>(tensor.shape.size())});
    out_.shapes.insert(out_.shapes.end(), tensor.shape.begin(), tensor.shape.end());
    int64_t count = 1;
    for (int64_t extent : tensor.shape)
      count *= extent;
    size_t from = out_.elements.size();
    auto width = static_cast<size_t>(rt::dtypeBytes(tensor.dtype));
    out_.elements.resize(from + static_cast<size_t>(count) * width);
    rt::fromRowLayout(tensor.shape, tensor.dtype, tensor.bytes.get(), out_.elements.data() + from);
    if (tensor.dtype != rt::DType::Bool)
      return;
    // A byte each, as DLPack has them.
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      out_.elements[from + i] = out_.elements[from + i * width];
    out_.elements.resize(from + static_cast<size_t>(count));
  }

  const api::LoadedModel &model_;
  Written &out_;
  std::vector<int64_t> slots_;
  std::vector<rt::Members> pending_;
};

/// A part of what was flattened, which must be of this type.
template <typename T>
std::span<const T> streamOf(Array &array, nb::handle column, const char *name) {
  nb::object object = nb::steal(PyObject_GetItem(column.ptr(), nb::str(name).ptr()));
  if (!object.is_valid())
    throw nb::python_error();
  constexpr bool real = std::is_floating_point_v<T>;
  if (!array.borrow(object.ptr()) || array.axes() != 1 || !array.isDense() ||
      array.dtype.bits != 8 * sizeof(T) || (array.dtype.code == kDLFloat) != real)
    raise(PyExc_ValueError, std::string("'") + name + "' is no part of encoded values");
  return {reinterpret_cast<const T *>(array.data), static_cast<size_t>(array.shape[0])};
}

/// `held`: has the extents.
std::vector<DLTensor> tensorsOf(std::span<const int64_t> shapes, std::span<const uint8_t> elements,
                                std::deque<std::vector<int64_t>> &held) {
  std::vector<DLTensor> all;
  size_t at = 0, bytes = 0;
  auto refuse = [] { raise(PyExc_ValueError, "'shapes' is no part of encoded values"); };
  while (at < shapes.size()) {
    if (shapes.size() - at < 3)
      refuse();
    DLDataType dtype{static_cast<uint8_t>(shapes[at]), static_cast<uint8_t>(shapes[at + 1]), 1};
    int64_t axes = shapes[at + 2];
    at += 3;
    if (dtype.bits < 8 || axes < 0 || static_cast<size_t>(axes) > shapes.size() - at)
      refuse();
    std::vector<int64_t> &shape =
        held.emplace_back(shapes.begin() + static_cast<ptrdiff_t>(at),
                          shapes.begin() + static_cast<ptrdiff_t>(at + static_cast<size_t>(axes)));
    at += static_cast<size_t>(axes);
    size_t size = dtype.bits / 8;
    for (int64_t extent : shape)
      if (extent < 0 || __builtin_mul_overflow(size, static_cast<size_t>(extent), &size))
        refuse();
    if (size > elements.size() - bytes)
      raise(PyExc_ValueError, "'elements' is no part of encoded values");
    DLTensor &tensor = all.emplace_back();
    tensor.data = const_cast<uint8_t *>(elements.data() + bytes);
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(axes);
    tensor.dtype = dtype;
    tensor.shape = shape.data();
    bytes += size;
  }
  if (bytes != elements.size())
    raise(PyExc_ValueError, "'elements' is no part of encoded values");
  return all;
}

} // namespace

std::unique_ptr<Values> Values::encode(Model &model, nb::handle columns) {
  auto store = std::make_shared<api::ValueStore>(model.shared());
  encodeColumns(model, columns, *store);
  auto made = std::make_unique<Values>();
  made->signature_ = model.signature();
  made->instances_ = store->instances;
  made->stores_.push_back(std::move(store));
  return made;
}

void Values::putInto(api::ValueStore &store, const Model &model) const {
  if (signature_ != model.signature())
    raise(PyExc_ValueError, "the values were encoded for a model with other arguments");
  for (const auto &held : stores_)
    store.keep(held);
  store.instances.assign(instances_.begin(), instances_.end());
  for (size_t i = 0; i < store.instances.size(); ++i)
    store.instances[i].index = static_cast<int64_t>(i);
}

size_t Values::bytes() const {
  size_t all = instances_.size() * sizeof(rt::Instance);
  for (const auto &store : stores_)
    all += static_cast<size_t>(store->heap.bytes());
  return all;
}

std::unique_ptr<Values> Values::select(std::span<const int64_t> which) const {
  auto made = std::make_unique<Values>();
  made->signature_ = signature_;
  made->stores_ = stores_;
  made->instances_.reserve(which.size());
  for (int64_t number : which) {
    if (number < 0 || static_cast<size_t>(number) >= instances_.size())
      raise(PyExc_IndexError, "there is no instance " + std::to_string(number) + " of " +
                                  std::to_string(instances_.size()));
    made->instances_.push_back(instances_[static_cast<size_t>(number)]);
  }
  return made;
}

std::unique_ptr<Values> Values::join(const std::vector<const Values *> &parts) {
  auto made = std::make_unique<Values>();
  for (const Values *part : parts) {
    if (made->stores_.empty())
      made->signature_ = part->signature_;
    else if (made->signature_ != part->signature_)
      raise(PyExc_ValueError, "values of models whose arguments differ");
    for (const auto &store : part->stores_)
      if (std::find(made->stores_.begin(), made->stores_.end(), store) == made->stores_.end())
        made->stores_.push_back(store);
    made->instances_.insert(made->instances_.end(), part->instances_.begin(),
                            part->instances_.end());
  }
  return made;
}

nb::list Values::flatten() const {
  nb::list columns;
  if (stores_.empty())
    return columns;
  const api::LoadedModel &model = *stores_[0]->model;
  const std::vector<uint32_t> &types = model.model().entry.argTypes;
  int64_t place = 0;
  for (uint32_t type : types) {
    Written written;
    Writer writer(model, written);
    for (const rt::Instance &instance : instances_) {
      written.mark();
      writer.write(type, instance.args + place);
    }
    written.mark();
    place += model.slots(type);
    nb::dict column;
    column["heads"] = arrayOf(std::move(written.heads));
    column["numbers"] = arrayOf(std::move(written.numbers));
    column["floats"] = arrayOf(std::move(written.floats));
    column["shapes"] = arrayOf(std::move(written.shapes));
    column["elements"] = arrayOf(std::move(written.elements));
    column["starts"] = arrayOf(std::move(written.starts));
    columns.append(column);
  }
  return columns;
}

std::unique_ptr<Values> Values::unflatten(Model &model, nb::handle columns, size_t count) {
  const std::vector<uint32_t> &types = model.loaded().model().entry.argTypes;
  nb::list given = nb::cast<nb::list>(columns);
  if (given.size() != types.size())
    raise(PyExc_ValueError, "the values are of a model with other arguments");
  auto store = std::make_shared<api::ValueStore>(model.shared());
  api::ValueBuilder builder(*store);
  std::vector<sheaf_value> arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    Array arrays[kStreams];
    auto heads = streamOf<uint32_t>(arrays[0], given[i], "heads");
    auto numbers = streamOf<int64_t>(arrays[1], given[i], "numbers");
    auto floats = streamOf<double>(arrays[2], given[i], "floats");
    auto shapes = streamOf<int64_t>(arrays[3], given[i], "shapes");
    auto elements = streamOf<uint8_t>(arrays[4], given[i], "elements");
    std::deque<std::vector<int64_t>> held;
    std::vector<DLTensor> tensors = tensorsOf(shapes, elements, held);
    std::vector<const DLTensor *> addresses;
    for (const DLTensor &tensor : tensors)
      addresses.push_back(&tensor);
    sheaf_preorder written{sizeof written, heads.data(),     heads.size(),
                           numbers.data(), numbers.size(),   floats.data(),
                           floats.size(),  addresses.data(), addresses.size()};
    try {
      arguments.push_back(builder.preorder(types[i], written, count));
    } catch (const api::Invalid &error) {
      raise(PyExc_ValueError, std::string("encoded values: ") + error.what());
    }
  }
  try {
    builder.instances(arguments, count, nullptr);
  } catch (const api::Invalid &error) {
    raise(PyExc_ValueError, std::string("encoded values: ") + error.what());
  }
  auto made = std::make_unique<Values>();
  made->signature_ = model.signature();
  made->instances_ = store->instances;
  made->stores_.push_back(std::move(store));
  return made;
}

void bindValues(nb::module_ &module) {
  nb::class_<Values>(module, "Values")
      .def_static("encode",
                  [](Model &model, nb::tuple columns) { return Values::encode(model, columns); })
      .def_static("unflatten",
                  [](Model &model, nb::list columns, size_t count) {
                    return Values::unflatten(model, columns, count);
                  })
      .def_static("join", &Values::join)
      .def("__len__", &Values::size)
      .def_prop_ro("bytes", &Values::bytes)
      .def_prop_ro("signature", [](const Values &values) { return values.signature(); })
      .def("select", [](const Values &values,
                        const std::vector<int64_t> &which) { return values.select(which); })
      .def("slice",
           [](const Values &values, int64_t start, int64_t step, int64_t count) {
             std::vector<int64_t> which(static_cast<size_t>(count));
             for (size_t i = 0; i < which.size(); ++i)
               which[i] = start + static_cast<int64_t>(i) * step;
             return values.select(which);
           })
      .def("flatten", &Values::flatten);
}

} // namespace sheaf::python
