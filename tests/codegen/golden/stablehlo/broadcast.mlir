// expand(v, [2, 4, 8])
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<2x4x8xf32>) {
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<8xf32>) -> tensor<2x4x8xf32>
    "func.return"(%1) : (tensor<2x4x8xf32>) -> ()
  }
}
