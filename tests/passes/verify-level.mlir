// RUN: split-file %s %t
// RUN: not sheaf-opt --inline %t/block.mlir 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not sheaf-opt --form-blocks %t/expand.mlir 2>&1 | FileCheck %s --check-prefix=EXPAND

// BLOCK: 'sheaf.block' op stands before blocks are formed
// BLOCK: after the pass inline

// EXPAND: 'sheaf.apply' op cannot run in a kernel
// EXPAND: after the pass form-blocks

//--- block.mlir
sheaf.block @b args(1) {
^bb0(%x: tensor<4xf32>):
  %y = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  sheaf.yield %y : tensor<4xf32>
}

//--- expand.mlir
func.func @main(%x: tensor<8x4xf32>, %i: i64) -> !sheaf.list<tensor<4xf32>> {
  %y = sheaf.apply "embedding"(%x, %i) {} : (tensor<8x4xf32>, i64) -> tensor<4xf32>
  %l = sheaf.list(%y) : (tensor<4xf32>) -> !sheaf.list<tensor<4xf32>>
  return %l : !sheaf.list<tensor<4xf32>>
}
