//===- Program.td - The Program dialect ----------------------*- tablegen -*-===//
//
// Programs: what the user wrote for one instance, after type checking and
// monomorphisation (no generics, no closures, no layers). Functions are
// func.func; host arithmetic is arith; branches are scf.if; tensors are builtin
// tensors whose `?` extents are per-instance dims.
//
//===------------------------------------------------------------------------===//
#ifndef SHEAF_PROGRAM_TD
#define SHEAF_PROGRAM_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Sheaf_Dialect : Dialect {
  let name = "sheaf";
  let cppNamespace = "::sheaf::ir";
  let summary = "Programs for one instance, and the blocks that run them for many";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

class Sheaf_Type<string cppName, string mnem> : TypeDef<Sheaf_Dialect, cppName> {
  let mnemonic = mnem;
}

def Sheaf_TokenType : Sheaf_Type<"Token", "token"> {
  let summary = "an int that names an entry of a vocabulary";
  let parameters = (ins StringRefParameter<"vocabulary name, empty for the default">:$vocab);
  let assemblyFormat = "`<` $vocab `>`";
}

def Sheaf_ListType : Sheaf_Type<"List", "list"> {
  let summary = "a persistent list";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def Sheaf_DataType : Sheaf_Type<"Data", "data"> {
  let summary = "a value of the `sheaf.data` declaration with this name";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$name);
  let assemblyFormat = "`<` $name `>`";
}

def Sheaf_CtorAttr : AttrDef<Sheaf_Dialect, "Ctor"> {
  let mnemonic = "ctor";
  let summary = "a constructor: its name, and the names and types of its fields";
  let parameters = (ins "::mlir::StringAttr":$name,
                        "::mlir::ArrayAttr":$fieldNames,
                        "::mlir::ArrayAttr":$fieldTypes);
  let assemblyFormat = "`<` $name `,` $fieldNames `,` $fieldTypes `>`";
}

class Sheaf_Op<string mnem, list<Trait> traits = []> : Op<Sheaf_Dialect, mnem, traits>;

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

def Sheaf_DataOp : Sheaf_Op<"data", [Symbol]> {
  let summary = "declares a sum type";
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypedArrayAttrBase<Sheaf_CtorAttr, "constructors">:$ctors);
  let assemblyFormat = "$sym_name $ctors attr-dict";
  let hasVerifier = 1;
}

def Sheaf_ParamOp : Sheaf_Op<"param", [Symbol]> {
  let summary = "declares a parameter (a weight) and its initialiser";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       StrAttr:$init, F64ArrayAttr:$init_args);
  let assemblyFormat = "$sym_name `:` $type `init` `(` $init `,` $init_args `)` attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

def Sheaf_ParamRefOp : Sheaf_Op<"param_ref", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a parameter: shared by all instances";
  let arguments = (ins FlatSymbolRefAttr:$param);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$param `:` type($result) attr-dict";
}

def Sheaf_ApplyOp : Sheaf_Op<"apply", [Pure]> {
  let summary = "applies the tensor operator of this name (compiler/ops)";
  let description = [{
    Operands are tensors, host scalars, lists of tensors (`stack`), and then the per-instance
    extents (i64) that fill those `?` of the result that no operand determines, in order.
    `attrs` holds the compile-time arguments of the operator's record (i64 or f64).
  }];
  let arguments = (ins StrAttr:$op, Variadic<AnyType>:$operands, DictionaryAttr:$attrs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$op `(` $operands `)` $attrs attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

def Sheaf_DimOp : Sheaf_Op<"dim", [Pure]> {
  let summary = "an extent of a tensor as a host int";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$axis);
  let results = (outs I64:$result);
  let assemblyFormat = "$tensor `,` $axis attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Sheaf_GhostOp : Sheaf_Op<"ghost", [Pure, SameOperandsAndResultType]> {
  let summary = "the same tensor, ready `depths` later: so that what takes it keeps in step";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$depths);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$tensor `,` $depths attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Sheaf_ReadOp : Sheaf_Op<"read", [AlwaysSpeculatable]> {
  let summary = "elements of a tensor as host values: the instance waits for them";
  let description = [{
    Of a tensor of one element that; of one with one axis the one at a position that is in range, or
    the list of all. A float tensor gives f64,
    an integer one i64, a bool one i1, a token one a token.

    The effect says that each stands for itself: one that nothing uses may go, but two of the same
    tensor are never made one. What a compiled program reads can then be found again, read by read,
    in the program as it was written (compiler/oracle/Replay.h).
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Optional<I64>:$at);
  let results = (outs Res<AnyType, "", [MemAlloc]>:$result);
  let assemblyFormat = "$tensor (`at` $at^)? attr-dict `:` functional-type($tensor, $result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Host values
//===----------------------------------------------------------------------===//

def Sheaf_ConvertOp : Sheaf_Op<"convert", [Pure]> {
  let summary = "converts between host scalars: int, float, bool, token";
  let description = "float to int truncates towards zero; token to int and back keeps the number.";
  let arguments = (ins AnyType:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

/// Operations that may end the instance with an error: the error is an effect, so they stay even
/// when nothing uses their result.
defvar Sheaf_MayFail = MemoryEffects<[MemWrite]>;

/// Divided by a constant that is not zero they cannot fail, and have no effect.
class Sheaf_IntOp<string mnem, string what>
    : Sheaf_Op<mnem, [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = what;
  let arguments = (ins I64:$lhs, I64:$rhs);
  let results = (outs I64:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}
def Sheaf_DivOp : Sheaf_IntOp<"div", "int quotient, rounded towards zero; a zero divisor is the instance's error">;
def Sheaf_RemOp : Sheaf_IntOp<"rem", "int remainder with the dividend's sign; a zero divisor is the instance's error">;

def Sheaf_SplitKeyOp : Sheaf_Op<"split_key", [Pure]> {
  let summary = "the key of a call or draw: the caller's key mixed with the number of the site";
  let description = [{
    Keys are ints; runtime/model/keys.h says how they are mixed. `site` is the number of the call in the
    source of its function, whatever becomes of that code. `index` is the number of the element
    where the call is made once for each element of a list.
  }];
  let arguments = (ins I64:$key, I64Attr:$site, Optional<I64>:$index);
  let results = (outs I64:$result);
  let assemblyFormat = "$key `,` $site (`,` $index^)? attr-dict";
}

def Sheaf_CheckOp : Sheaf_Op<"check", [Sheaf_MayFail]> {
  let summary = "ends the instance with an error unless the condition holds";
  let description = [{
    `{0}` and `{1}` in the message stand for the values; without values braces mean nothing.
  }];
  let arguments = (ins I1:$condition, Variadic<I64>:$values, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message (`(` $values^ `)`)? attr-dict";
  let builders = [OpBuilder<(ins "::mlir::Value":$condition, "const ::llvm::Twine &":$message,
                                 CArg<"::mlir::ValueRange", "{}">:$values), [{
    build($_builder, $_state, condition, values, $_builder.getStringAttr(message));
  }]>];
}

def Sheaf_EmitOp : Sheaf_Op<"emit", [MemoryEffects<[MemWrite]>]> {
  let summary = "hands a value to whoever asked for the instance";
  let description = [{
    `type` is that of the program's entry (kEmitsAttr), which may have `?` where the value's own has
    numbers. The effect keeps it, and its place in the order of the program.
  }];
  let arguments = (ins AnyType:$value, TypeAttr:$type);
  let assemblyFormat = "$value `:` type($value) `as` $type attr-dict";
}

def Sheaf_TupleOp : Sheaf_Op<"tuple", [Pure]> {
  let summary = "makes a tuple";
  let arguments = (ins Variadic<AnyType>:$fields);
  let results = (outs AnyTuple:$result);
  let assemblyFormat = "`(` $fields `)` attr-dict `:` functional-type($fields, $result)";
  let hasVerifier = 1;
}

def Sheaf_GetOp : Sheaf_Op<"get", [Pure]> {
  let summary = "a field of a tuple";
  let arguments = (ins AnyTuple:$tuple, I64Attr:$index);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$tuple `[` $index `]` attr-dict `:` functional-type($tuple, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Sheaf_ConstructOp : Sheaf_Op<"construct", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "makes a value of a data type with its ctor-th constructor";
  let arguments = (ins I64Attr:$ctor, Variadic<AnyType>:$fields);
  let results = (outs Sheaf_DataType:$result);
  let assemblyFormat = "$ctor `(` $fields `)` attr-dict `:` functional-type($fields, $result)";
}

def Sheaf_MatchOp : Sheaf_Op<"match", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                       RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "branches on the constructor of a data value";
  let description = [{
    Region i handles constructor `cases[i]`; its block arguments are that constructor's fields. A
    last region without a case handles the rest and has no arguments. Together they are exhaustive.
    Each region ends in `sheaf.yield` of the results.
  }];
  let arguments = (ins Sheaf_DataType:$scrutinee, DenseI64ArrayAttr:$cases);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$arms);
  let assemblyFormat = "$scrutinee $cases `:` functional-type($scrutinee, $results) $arms attr-dict";
}

def Sheaf_YieldOp : Sheaf_Op<"yield", [Pure, Terminator]> {
  let summary = "ends a region of a Program operation, or a block";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

def Sheaf_ListMakeOp : Sheaf_Op<"list", [Pure]> {
  let summary = "a list of these elements";
  let arguments = (ins Variadic<AnyType>:$elements);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "`(` $elements `)` attr-dict `:` functional-type($elements, $result)";
  let hasVerifier = 1;
}
def Sheaf_ConsOp : Sheaf_Op<"cons", [Pure, AllTypesMatch<["tail", "result"]>]> {
  let summary = "head :: tail, amortised O(1)";
  let arguments = (ins AnyType:$head, Sheaf_ListType:$tail);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$head `,` $tail attr-dict `:` type($head) `,` type($tail)";
}
def Sheaf_AppendOp : Sheaf_Op<"append", [Pure, AllTypesMatch<["init", "result"]>]> {
  let summary = "the list with one more element at its end, amortised O(1)";
  let arguments = (ins Sheaf_ListType:$init, AnyType:$last);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$init `,` $last attr-dict `:` type($init) `,` type($last)";
}
def Sheaf_ListConcatOp : Sheaf_Op<"list_concat", [Pure, SameOperandsAndResultType]> {
  let summary = "one list after the other";
  let arguments = (ins Sheaf_ListType:$lhs, Sheaf_ListType:$rhs);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
def Sheaf_LenOp : Sheaf_Op<"len", [Pure]> {
  let summary = "the number of elements";
  let arguments = (ins Sheaf_ListType:$list);
  let results = (outs I64:$result);
  let assemblyFormat = "$list attr-dict `:` type($list)";
}
def Sheaf_ListGetOp : Sheaf_Op<"list_get", [Sheaf_MayFail]> {
  let summary = "the element at an index; out of range is the instance's error";
  let arguments = (ins Sheaf_ListType:$list, I64:$index);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$list `[` $index `]` attr-dict `:` functional-type($list, $result)";
  let hasVerifier = 1;
}
def Sheaf_ListSliceOp : Sheaf_Op<"list_slice", [Sheaf_MayFail, AllTypesMatch<["list", "result"]>]> {
  let summary = "elements lo to hi, hi excluded; out of range is the instance's error";
  let arguments = (ins Sheaf_ListType:$list, I64:$lo, I64:$hi);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$list `[` $lo `,` $hi `]` attr-dict `:` type($list)";
}
def Sheaf_ReverseOp : Sheaf_Op<"reverse", [Pure, SameOperandsAndResultType]> {
  let summary = "the list backwards";
  let arguments = (ins Sheaf_ListType:$list);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$list attr-dict `:` type($list)";
}
def Sheaf_ZipOp : Sheaf_Op<"zip", [Sheaf_MayFail]> {
  let summary = "the list of tuples of elements at equal indices; unequal lengths are the instance's error";
  let arguments = (ins Variadic<Sheaf_ListType>:$lists);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "`(` $lists `)` attr-dict `:` functional-type($lists, $result)";
}
def Sheaf_RangeOp : Sheaf_Op<"range", [Pure]> {
  let summary = "the ints lo to hi, hi excluded; empty when hi <= lo";
  let arguments = (ins I64:$lo, I64:$hi);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$lo `,` $hi attr-dict `:` type($result)";
}
def Sheaf_RowsOp : Sheaf_Op<"rows", [Pure]> {
  let summary = "f32[n, h] as a list of its n rows, by address";
  let arguments = (ins AnyRankedTensor:$tensor);
  let results = (outs Sheaf_ListType:$result);
  let assemblyFormat = "$tensor attr-dict `:` functional-type($tensor, $result)";
}

class Sheaf_LoopOp<string mnem, string what> : Sheaf_Op<mnem,
    [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = what;
  let description = "The body may have one more argument, an i64: the element's number, from 0.";
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
}
def Sheaf_MapOp : Sheaf_LoopOp<"map", "the list of body(x), bodies independent"> {
  let arguments = (ins Sheaf_ListType:$list);
  let assemblyFormat = "$list `:` functional-type($list, $result) $body attr-dict";
}
def Sheaf_FilterOp : Sheaf_LoopOp<"filter", "the elements for which body(x) yields true"> {
  let arguments = (ins Sheaf_ListType:$list);
  let assemblyFormat = "$list `:` functional-type($list, $result) $body attr-dict";
}
def Sheaf_FoldOp : Sheaf_LoopOp<"fold", "body(acc, x) from left to right: the last acc"> {
  let arguments = (ins AnyType:$init, Sheaf_ListType:$list);
  let assemblyFormat = "$init `,` $list `:` functional-type(operands, $result) $body attr-dict";
}
def Sheaf_ScanOp : Sheaf_LoopOp<"scan", "body(acc, x) from left to right: the list of every acc after init"> {
  let arguments = (ins AnyType:$init, Sheaf_ListType:$list);
  let assemblyFormat = "$init `,` $list `:` functional-type(operands, $result) $body attr-dict";
}

//===----------------------------------------------------------------------===//
// Blocks: straight-line tensor code that runs as one batched kernel
//===----------------------------------------------------------------------===//

def Sheaf_BlockOp : Sheaf_Op<"block", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "one fused kernel";
  let description = [{
    The body's arguments are `num_args` per-instance values (tensors, host scalars) and then the
    shared weights. The body holds only `sheaf.apply`, `sheaf.dim`, arith on its host scalars, and
    ends in `sheaf.yield` of the tensors that later code uses.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$num_args);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `args` `(` $num_args `)` $body attr-dict-with-keyword";
  let hasVerifier = 1;
}

def Sheaf_RecordOp : Sheaf_Op<"record", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "records one run of a block on these arguments with these parameters as its weights";
  let arguments = (ins FlatSymbolRefAttr:$block, Variadic<AnyType>:$args,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "parameters">:$weights);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $block `(` $args `)` `weights` $weights attr-dict `:` functional-type($args, $results)
  }];
}

def Sheaf_JoinedOp : Sheaf_Op<"joined", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the results of a record, or of one of another block where rows are short";
  let description = [{
    The first operands are all results of a `sheaf.record` and are what comes out. What that takes
    of records marked `sheaf.hoisted` the block computes itself: where host code saves rows, it
    records this block on the operands after them instead of all of those.
  }];
  let arguments = (ins FlatSymbolRefAttr:$block, Variadic<AnyType>:$inputs,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "parameters">:$weights);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $block `(` $inputs `)` `weights` $weights attr-dict `:` functional-type($inputs, $results)
  }];
  let extraClassDeclaration = [{
    ::mlir::ValueRange getArgs() { return ::mlir::ValueRange(getInputs()).drop_front(getNumResults()); }
    RecordOp getRecord();
  }];
}

#endif // SHEAF_PROGRAM_TD
