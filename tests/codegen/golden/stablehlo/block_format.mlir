// k + 1
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %1 = stablehlo.constant dense<0x3F800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %3 = stablehlo.add %arg0, %2 : tensor<4x8xf32>
    "func.return"(%3) : (tensor<4x8xf32>) -> ()
  }
}
