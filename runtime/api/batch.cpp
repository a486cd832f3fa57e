// Instances, made value by value or taken from what was built before.
#include "runtime/api/tensors.h"
#include "runtime/api/values.h"

#include <bit>
#include <utility>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

class Builder {
public:
  Builder(sheaf_batch *batch, sheaf_value *value)
      : batch_(given(batch, "batch")), out_(given(value, "value")), lock_(batch_.mutex),
        model_(*batch_.store->model) {}

  const LoadedModel &model() const { return model_; }
  io::SlotHeap &heap() { return batch_.store->heap; }

  /// A part, which must be of a type; `what` and `number` say which it is.
  const sheaf_batch::Value &find(sheaf_value value, sheaf_type type, const char *what,
                                 size_t number) const {
    uint64_t index = (value.id & UINT32_MAX) - 1;
    if (value.id >> 32 != batch_.store->serial || index >= batch_.values.size())
      throw Invalid(std::string(what) + " " + std::to_string(number) +
                    " is no value of this batch");
    const sheaf_batch::Value &found = batch_.values[index];
    if (found.type != type)
      throw Invalid(std::string(what) + " " + std::to_string(number) + " is of type '" +
                    model_.text(found.type) + "', not '" + model_.text(type) + "'");
    return found;
  }
  /// The slots of one that is made in the batch.
  const Slot *part(sheaf_value value, sheaf_type type, const char *what, size_t number) const {
    const sheaf_batch::Value &found = find(value, type, what, number);
    if (found.kept && !takesKept)
      throw Invalid(std::string(what) + " " + std::to_string(number) +
                    " is kept by an engine: it can only be an argument, as a whole");
    return batch_.slots.data() + found.first;
  }

  /// Slots of parts of these types, one after the other.
  std::vector<Slot> parts(const sheaf_value *values, size_t count, std::span<const uint32_t> types,
                          const char *what) const {
    if (count != types.size())
      throw Invalid("given " + std::to_string(count) + " of " + std::to_string(types.size()) + " " +
                    what + "s");
    if (count)
      given(values, what);
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) {
      const Slot *from = part(values[i], types[i], what, i);
      slots.insert(slots.end(), from, from + model_.slots(types[i]));
    }
    return slots;
  }

  void finish(sheaf_type type, std::span<const Slot> slots, rt::KeptValue kept = {}) {
    if (batch_.values.size() == UINT32_MAX - 1)
      throw Invalid("the batch has too many values");
    batch_.values.push_back({type, batch_.slots.size(), std::move(kept)});
    batch_.slots.insert(batch_.slots.end(), slots.begin(), slots.end());
    out_.id = uint64_t(batch_.store->serial) << 32 | batch_.values.size();
  }
  void finish(sheaf_type type, Slot slot) { finish(type, std::span(&slot, 1)); }

  bool takesKept = false;

private:
  sheaf_batch &batch_;
  sheaf_value &out_;
  std::lock_guard<std::mutex> lock_;
  const LoadedModel &model_;
};

} // namespace

sheaf_status sheaf_batch_create(sheaf_model *model, sheaf_batch **batch) {
  return guarded([&] {
    given(batch, "batch");
    *batch = new sheaf_batch(given(model, "model").model);
  });
}

void sheaf_batch_release(sheaf_batch *batch) { delete batch; }

sheaf_status sheaf_batch_clear(sheaf_batch *batch) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(batch, "batch").mutex);
    batch->begin(std::make_shared<ValueStore>(batch->store->model));
  });
}

size_t sheaf_batch_size(const sheaf_batch *batch) {
  if (!batch)
    return 0;
  std::lock_guard<std::mutex> lock(const_cast<sheaf_batch *>(batch)->mutex);
  return batch->store->instances.size();
}

sheaf_status sheaf_make_int(sheaf_batch *batch, sheaf_type type, int64_t number,
                            sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Int);
    builder.finish(type, number);
  });
}

sheaf_status sheaf_make_float(sheaf_batch *batch, sheaf_type type, double number,
                              sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Float);
    builder.finish(type, std::bit_cast<Slot>(number));
  });
}

sheaf_status sheaf_make_bool(sheaf_batch *batch, sheaf_type type, int truth, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Bool);
    builder.finish(type, Slot(truth != 0));
  });
}

sheaf_status sheaf_make_token(sheaf_batch *batch, sheaf_type type, int64_t token,
                              sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Token);
    checkToken(builder.model(), type, token);
    builder.finish(type, token);
  });
}

sheaf_status sheaf_make_tensor(sheaf_batch *batch, sheaf_type type, const DLTensor *tensor,
                               sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Tensor);
    std::vector<Slot> slots(static_cast<size_t>(builder.model().slots(type)));
    putTensor(builder.model(), type, given(tensor, "tensor"), builder.heap(), slots.data());
    builder.finish(type, slots);
  });
}

sheaf_status sheaf_make_list(sheaf_batch *batch, sheaf_type type, const sheaf_value *elements,
                             size_t count, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    const rt::TypeDesc &desc = builder.model().typeOf(type, TypeKind::List);
    uint32_t element = desc.children[0];
    if (desc.length >= 0 && static_cast<uint64_t>(*desc.length) != count)
      throw Invalid("the list has " + std::to_string(count) + " elements; its type is '" +
                    builder.model().text(type) + "'");
    if (count)
      given(elements, "elements");
    int64_t width = builder.model().slots(element);
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) {
      const Slot *from = builder.part(elements[i], element, "element", i);
      slots.insert(slots.end(), from, from + width);
    }
    builder.finish(type, builder.heap().list(slots.data(), static_cast<int64_t>(count), width));
  });
}

sheaf_status sheaf_make_tuple(sheaf_batch *batch, sheaf_type type, const sheaf_value *parts,
                              size_t count, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    const rt::TypeDesc &desc = builder.model().typeOf(type, TypeKind::Tuple);
    builder.finish(type, builder.parts(parts, count, desc.children, "part"));
  });
}

sheaf_status sheaf_make_data(sheaf_batch *batch, sheaf_type type, size_t constructor,
                             const sheaf_value *fields, size_t count, sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    builder.model().typeOf(type, TypeKind::Data);
    const rt::CtorDesc *ctor = builder.model().constructor(type, constructor);
    if (!ctor)
      throw Invalid("'" + builder.model().text(type) + "' has no constructor " +
                    std::to_string(constructor));
    std::vector<Slot> slots;
    try {
      slots = builder.parts(fields, count, ctor->fieldTypes, "field");
    } catch (const Invalid &error) {
      throw Invalid(ctor->name + ": " + error.what());
    }
    builder.finish(type, builder.heap().data(static_cast<uint32_t>(constructor), slots.data(),
                                             static_cast<int64_t>(slots.size())));
  });
}

sheaf_status sheaf_make_kept(sheaf_batch *batch, sheaf_type type, const sheaf_kept *kept,
                             sheaf_value *value) {
  return guarded([&] {
    Builder builder(batch, value);
    const rt::KeptValue &from = given(kept, "kept").value;
    if (kept->model.get() != &builder.model())
      throw Invalid("the kept value is of another model");
    if (!builder.model().type(type) || !from.fits(type))
      throw Invalid("the kept value is of type '" + builder.model().text(from.type()) + "'" +
                    (builder.model().type(type) ? ", not '" + builder.model().text(type) + "'"
                                                : ": there is no type " + std::to_string(type)));
    builder.finish(type, {from.slots(), static_cast<size_t>(builder.model().slots(type))}, from);
  });
}

sheaf_status sheaf_batch_add(sheaf_batch *batch, const sheaf_value *arguments, size_t count,
                             int64_t id) {
  return guarded([&] {
    sheaf_value unused;
    Builder builder(batch, &unused);
    builder.takesKept = true;
    const std::vector<uint32_t> &types = builder.model().model().entry.argTypes;
    std::vector<Slot> slots = builder.parts(arguments, count, types, "argument");
    if (builder.model().bindsExtents())
      bindExtents(builder.model(), types, slots.data());
    Slot *args = builder.heap().allocate(static_cast<int64_t>(slots.size()));
    std::copy(slots.begin(), slots.end(), args);
    ValueStore &store = *batch->store;
    std::vector<std::pair<size_t, rt::KeptArgument>> kept;
    for (size_t i = 0; i < count; ++i)
      if (const rt::KeptValue &value = builder.find(arguments[i], types[i], "argument", i).kept)
        kept.push_back({store.instances.size(), {i, value}});
    store.instances.push_back({args, id});
    try {
      store.kept.insert(store.kept.end(), kept.begin(), kept.end());
    } catch (...) {
      store.instances.pop_back();
      throw;
    }
  });
}

sheaf_status sheaf_batch_add_instances(sheaf_batch *batch, const sheaf_values *values,
                                       const uint64_t *which, size_t count, const int64_t *ids) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(given(batch, "batch").mutex);
    const auto &from = given(values, "values").store;
    if (from->model != batch->store->model)
      throw Invalid("the values are of another model");
    size_t there = from->instances.size();
    auto number = [&](size_t i) { return which ? which[i] : i; };
    for (size_t i = 0; i < count; ++i)
      if (number(i) >= there)
        throw Invalid("there is no instance " + std::to_string(number(i)) + " but " +
                      std::to_string(there));
    std::vector<rt::Instance> &instances = batch->store->instances;
    if (instances.capacity() < instances.size() + count)
      instances.reserve(std::max(instances.size() + count, 2 * instances.size()));
    batch->store->keep(from);
    for (size_t i = 0; i < count; ++i) {
      rt::Instance &added = instances.emplace_back(from->instances[number(i)]);
      if (ids)
        added.index = ids[i];
    }
  });
}
