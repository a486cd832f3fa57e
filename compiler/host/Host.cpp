//===- Host.cpp - What the functions of a module share --------------------===//

#include "compiler/host/Emitter.h"

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/ir/Place.h"
#include "compiler/kernels/plan/BlockShapes.h"
#include "runtime/model/error.h"

#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace sheaf::host {
namespace {

/// What comes back in registers on every target; a tail call could not hand on memory for more.
constexpr size_t kResultRegisters = 2;

constexpr const char *kEntrySymbol = "sheaf_entry", *kFoldSymbol = "sheaf_fold_weights";

void appendSlotTypes(Type type, llvm::LLVMContext &context,
                     llvm::SmallVectorImpl<llvm::Type *> &types) {
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  if (auto tuple = dyn_cast<TupleType>(type)) {
    for (Type field : tuple.getTypes())
      appendSlotTypes(field, context, types);
  } else if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    types.append(1 + tensor.getNumDynamicDims(), i64);
  } else if (type.isF64()) {
    types.push_back(llvm::Type::getDoubleTy(context));
  } else if (type.isInteger(1)) {
    types.push_back(llvm::Type::getInt1Ty(context));
  } else if (isa<ir::ListType, ir::DataType>(type)) {
    types.push_back(llvm::PointerType::get(context, 0));
  } else if (type.isInteger(64) || isa<ir::TokenType>(type)) {
    types.push_back(i64);
  } else {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    throw InternalError("host code has no values of type " + text);
  }
}

} // namespace

llvm::SmallVector<llvm::Type *, 2> slotTypes(Type type, llvm::LLVMContext &context) {
  llvm::SmallVector<llvm::Type *, 2> types;
  appendSlotTypes(type, context, types);
  return types;
}

llvm::SmallVector<llvm::Type *> slotTypes(TypeRange types, llvm::LLVMContext &context) {
  llvm::SmallVector<llvm::Type *> all;
  for (Type type : types)
    appendSlotTypes(type, context, all);
  return all;
}

llvm::Value *toSlot(llvm::IRBuilderBase &builder, llvm::Value *value) {
  llvm::Type *type = value->getType(), *i64 = builder.getInt64Ty();
  if (type->isDoubleTy())
    return builder.CreateBitCast(value, i64);
  if (type->isPointerTy())
    return builder.CreatePtrToInt(value, i64);
  return builder.CreateZExt(value, i64);
}

llvm::Value *fromSlot(llvm::IRBuilderBase &builder, llvm::Value *slot, llvm::Type *type) {
  if (type->isDoubleTy())
    return builder.CreateBitCast(slot, type);
  if (type->isPointerTy())
    return builder.CreateIntToPtr(slot, type);
  return builder.CreateTrunc(slot, type);
}

ModuleEmitter::ModuleEmitter(const HostInput &input, llvm::Module &module)
    : input(input), module(module), context(module.getContext()), symbols_(input.program) {
  for (const rt::ParamDesc &param : input.params)
    paramIds_[param.name] = param.id;
  for (const kernels::Kernel &kernel : input.kernels) {
    ir::BlockOp block = kernel.block;
    kernels_[block.getSymName()] = &kernel;
  }
}

HostCode ModuleEmitter::run() {
  ModuleOp program = input.program;
  chainedLists = passes::chainsLists(program);
  reads = program->walk([](ir::ReadOp) { return WalkResult::interrupt(); }).wasInterrupted();
  declareFunctions();
  for (auto func : program.getOps<func::FuncOp>())
    FunctionEmitter(*this, functions_[func.getName()]).run();
  llvm::Function *entry = thunk(input.entry, /*isEntry=*/true);
  entry->setName(kEntrySymbol);
  entry->setLinkage(llvm::Function::ExternalLinkage);
  std::string fold;
  for (auto func : program.getOps<func::FuncOp>())
    if (func->hasAttr(ir::kFoldedAttr)) {
      llvm::Function *code = thunk(func.getName(), /*isEntry=*/true);
      code->setName(fold = kFoldSymbol);
      code->setLinkage(llvm::Function::ExternalLinkage);
    }
  std::string error;
  llvm::raw_string_ostream stream(error);
  if (llvm::verifyModule(module, &stream))
    throw InternalError("host code is not valid: " + error);
  HostCode code;
  code.entrySymbol = kEntrySymbol;
  code.foldSymbol = std::move(fold);
  code.messages = std::move(messages_);
  code.messageColumns = std::move(messageColumns_);
  code.chainedLists = chainedLists;
  code.reads = reads;
  code.readPlaces = std::move(readPlaces_);
  code.readPaths = std::move(readPaths_);
  code.roots = std::move(roots_);
  return code;
}

void ModuleEmitter::declareFunctions() {
  ModuleOp program = input.program;
  passes::CallGraph graph(program);
  llvm::DenseSet<Operation *> waiting = graph.readers();
  llvm::Type *ptr = llvm::PointerType::get(context, 0), *i64 = llvm::Type::getInt64Ty(context);
  for (auto func : program.getOps<func::FuncOp>()) {
    Function function;
    function.source = func;
    function.recursive = graph.isRecursive(func);
    function.mayWait = waiting.contains(func);
    size_t results = slotTypes(func.getResultTypes(), context).size();
    function.resultsInMemory = results > kResultRegisters;
    llvm::SmallVector<llvm::Type *> args{ptr};
    if (function.resultsInMemory)
      args.push_back(ptr);
    args.append(slotTypes(func.getArgumentTypes(), context));
    llvm::Type *result = llvm::Type::getVoidTy(context);
    if (results == 1)
      result = i64;
    else if (results == 2)
      result = llvm::StructType::get(context, {i64, i64});
    function.code =
        llvm::Function::Create(llvm::FunctionType::get(result, args, false),
                               llvm::Function::InternalLinkage, "host." + func.getName(), module);
    function.code->setCallingConv(llvm::CallingConv::Tail);
    function.code->setDoesNotThrow();
    functions_[func.getName()] = function;
  }
}

llvm::Function *ModuleEmitter::thunk(llvm::StringRef name, bool isEntry) {
  auto it = functions_.find(name);
  if (it == functions_.end())
    throw InternalError("no function " + name.str());
  Function &function = it->second;
  if (function.thunk && !isEntry)
    return function.thunk;
  func::FuncOp source = function.source;
  llvm::Type *ptr = llvm::PointerType::get(context, 0), *i64 = llvm::Type::getInt64Ty(context);
  auto *thunk = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {ptr, ptr, ptr}, false),
      llvm::Function::InternalLinkage, "call." + name, module);
  if (!isEntry)
    function.thunk = thunk;
  thunk->setDoesNotThrow();
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", thunk));
  llvm::Value *results = thunk->getArg(2);
  llvm::SmallVector<llvm::Value *> args{thunk->getArg(0)};
  if (function.resultsInMemory)
    args.push_back(results);
  llvm::ArrayRef<Type> given = source.getArgumentTypes();
  if (isEntry && ir::takesKey(source)) {
    given = given.drop_front();
    args.push_back(builder.CreateLoad(
        i64, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), thunk->getArg(0),
                                                offsetof(rt::Context, key))));
  }
  for (auto [i, type] : llvm::enumerate(slotTypes(given, context))) {
    llvm::Value *address = builder.CreateConstInBoundsGEP1_64(i64, thunk->getArg(1), i);
    args.push_back(fromSlot(builder, builder.CreateLoad(i64, address), type));
  }
  llvm::CallInst *call = builder.CreateCall(function.code, args);
  call->setCallingConv(llvm::CallingConv::Tail);
  auto store = [&](llvm::Value *value, int64_t slot) {
    builder.CreateStore(value, builder.CreateConstInBoundsGEP1_64(i64, results, slot));
  };
  if (call->getType()->isIntegerTy())
    store(call, 0);
  else if (call->getType()->isStructTy())
    for (unsigned i = 0; i < kResultRegisters; ++i)
      store(builder.CreateExtractValue(call, i), i);
  builder.CreateRetVoid();
  return thunk;
}

llvm::Function *ModuleEmitter::thunk(llvm::StringRef name, const Awaited &awaited) {
  Function &function = functions_.find(name)->second;
  auto known = llvm::find_if(function.waitingThunks,
                             [&](const auto &thunk) { return thunk.first == awaited; });
  if (known != function.waitingThunks.end())
    return known->second;
  llvm::Function *plain = thunk(name);
  Function waiting;
  waiting.source = function.source;
  waiting.code = llvm::Function::Create(plain->getFunctionType(), llvm::Function::InternalLinkage,
                                        "wait." + name, module);
  waiting.code->setDoesNotThrow();
  FunctionEmitter(*this, waiting).runWaiting(awaited, plain);
  function.waitingThunks.push_back({awaited, waiting.code});
  return waiting.code;
}

llvm::Function *ModuleEmitter::goOn(const Function &function) {
  func::FuncOp source = function.source;
  auto *goOn =
      llvm::Function::Create(function.code->getFunctionType(), llvm::Function::InternalLinkage,
                             "further." + source.getName(), module);
  goOn->setCallingConv(llvm::CallingConv::Tail);
  goOn->setDoesNotThrow();
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", goOn));
  llvm::Type *ptr = builder.getPtrTy(), *i64 = builder.getInt64Ty();
  auto array = [&](size_t slots) { return builder.CreateAlloca(i64, builder.getInt64(slots)); };
  auto place = [&](llvm::Value *slots, unsigned i) {
    return builder.CreateConstInBoundsGEP1_64(i64, slots, i);
  };
  unsigned first = function.resultsInMemory ? 2 : 1, count = goOn->arg_size() - first;
  llvm::Value *args = array(count);
  llvm::Value *results;
  if (function.resultsInMemory)
    results = goOn->getArg(1);
  else
    results = array(kResultRegisters);
  for (unsigned i = 0; i < count; ++i)
    builder.CreateStore(toSlot(builder, goOn->getArg(first + i)), place(args, i));
  builder.CreateCall(runtime("sheaf_go_on", builder.getVoidTy(), {ptr, ptr, ptr, ptr}),
                     {goOn->getArg(0), thunk(source.getName()), args, results});
  llvm::Type *type = goOn->getReturnType();
  if (type->isVoidTy()) {
    builder.CreateRetVoid();
  } else if (type->isIntegerTy()) {
    builder.CreateRet(builder.CreateLoad(i64, results));
  } else {
    llvm::Value *pair = llvm::PoisonValue::get(type);
    for (unsigned i = 0; i < kResultRegisters; ++i)
      pair = builder.CreateInsertValue(pair, builder.CreateLoad(i64, place(results, i)), i);
    builder.CreateRet(pair);
  }
  return goOn;
}

llvm::FunctionCallee ModuleEmitter::runtime(llvm::StringRef name, llvm::Type *result,
                                            llvm::ArrayRef<llvm::Type *> args) {
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, llvm::FunctionType::get(result, args, false));
  cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  return callee;
}

unsigned ModuleEmitter::message(Location where, const llvm::Twine &text) {
  std::string whole = ir::placeOf(where) + ": " + text.str();
  int64_t column = ir::columnOf(where);
  auto [it, isNew] =
      messageNumbers_.try_emplace(whole + "\n" + std::to_string(column), messages_.size());
  if (isNew) {
    messages_.push_back(whole);
    messageColumns_.push_back(column);
  }
  return it->second;
}

unsigned ModuleEmitter::readPlace(Location where) {
  std::string path = ir::pathText(ir::pathOf(where));
  auto it = llvm::find(readPaths_, path);
  if (it == readPaths_.end()) {
    it = readPaths_.insert(it, std::move(path));
    readPlaces_.push_back(ir::placeOf(where));
  }
  return it - readPaths_.begin();
}

unsigned ModuleEmitter::rootPlace(std::vector<Root> roots) {
  auto it = llvm::find(roots_, roots);
  if (it == roots_.end())
    it = roots_.insert(it, std::move(roots));
  return it - roots_.begin();
}

const kernels::Kernel &ModuleEmitter::kernel(unsigned instance) const {
  ir::BlockOp block = input.instances.all()[instance].block;
  auto it = kernels_.find(block.getSymName());
  if (it == kernels_.end())
    throw InternalError("block " + block.getSymName().str() + " was not planned");
  return *it->second;
}

const std::set<unsigned> &ModuleEmitter::extentArguments(ir::BlockOp block) {
  auto [it, isNew] = extentArguments_.try_emplace(block);
  if (!isNew)
    return it->second;
  kernels::BlockShapes shapes(block);
  for (Operation &op : block.getBody().front().without_terminator())
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()))
        for (const Dim &extent : shapes.of(result))
          for (const std::string &symbol : extent.symbols())
            if (symbol.find('.') == std::string::npos)
              it->second.insert(static_cast<unsigned>(std::stoul(symbol)));
  return it->second;
}

llvm::Constant *ModuleEmitter::emptyConstructor(int64_t ctor) {
  llvm::Constant *&value = emptyConstructors_[ctor];
  if (!value) {
    auto *number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), ctor);
    value = new llvm::GlobalVariable(module, number->getType(), true,
                                     llvm::GlobalValue::PrivateLinkage, number, "ctor");
  }
  return value;
}

HostCode emitHost(const HostInput &input, llvm::Module &module) {
  return ModuleEmitter(input, module).run();
}

} // namespace sheaf::host
